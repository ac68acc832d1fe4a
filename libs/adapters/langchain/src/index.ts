export { PiiRule as RedactionRule } from './options/pii-rule.ts';
export type { Configurable, ShellToolMiddlewareOptions } from './options/shell-tool-options.ts';
export {
  CodexSandboxExecutionPolicy,
  type CodexSandboxExecutionPolicyOptions,
} from './policies/codex-sandbox-execution-policy.ts';
export { DockerExecutionPolicy, type DockerExecutionPolicyOptions } from './policies/docker-execution-policy.ts';
export type { ExecutionPolicyOptions, ShellExecutionPolicy } from './policies/execution-policy.ts';
export { HostExecutionPolicy, type HostExecutionPolicyOptions } from './policies/host-execution-policy.ts';
export { ShellToolMiddleware, shellToolMiddleware } from './shell-tool-middleware.ts';
export { type ShellTool, type ShellToolOptions, shellTool } from './tool/shell-tool.ts';
