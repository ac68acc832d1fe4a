// The modules that load no other module, not even zod, for a process that has to start fast.
export * from './define-tool.ts';
export * from './field-issues.ts';
export * from './issue-text.ts';
export * from './json-text.ts';
