// What loads nothing else, zod included: for a process whose start counts.
export * from './define-tool.ts';
export * from './field-issues.ts';
export * from './json-text.ts';
