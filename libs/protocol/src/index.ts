export * from './api-key.ts';
export * from './approval.ts';
export * from './approval-announcement.ts';
export * from './approval-data.ts';
export { approvalSchema } from './approval-schema.ts';
export * from './audit.ts';
export * from './caller.ts';
export * from './canonical-json.ts';
export * from './defaults.ts';
export * from './define-tool.ts';
export * from './duration-text.ts';
export * from './entry-payload.ts';
export * from './env.ts';
export * from './errors.ts';
export * from './events.ts';
export * from './execution-options.ts';
export * from './execution-policy.ts';
export * from './field-issues.ts';
export * from './field-schemas.ts';
export * from './file.ts';
export * from './file-operation.ts';
export * from './fleet-configuration.ts';
export * from './fleet-event.ts';
export * from './host.ts';
export { hostInfoSchema } from './host-info-schema.ts';
export type { HostGate, HostImage, HostPool, RunningPull } from './host-parts.ts';
export * from './ids.ts';
export * from './image-name.ts';
export * from './is-on.ts';
export * from './issue-text.ts';
export * from './json-schema.ts';
export * from './json-text.ts';
export * from './kept-sandbox.ts';
export * from './keys.ts';
export * from './labels.ts';
export * from './limits.ts';
export * from './log.ts';
export * from './log-fields.ts';
export * from './metrics.ts';
export * from './output-profiles.ts';
export * from './prefix-rule.ts';
export * from './printable.ts';
export * from './quote-word.ts';
export * from './read-lines.ts';
export * from './receipt.ts';
export * from './redaction.ts';
export * from './result.ts';
export { resultSchema } from './result-schema.ts';
export * from './run-options.ts';
export * from './sandbox-options.ts';
export {
  isSandboxed,
  type ResolvedSandbox,
  refusedByLists,
  refusedSandbox,
  resolveSandbox,
  SANDBOX_TABLE,
  type SandboxChoice,
  sandboxToList,
} from './sandbox-table.ts';
export * from './session.ts';
export * from './session-event.ts';
export { IMAGE_CWD, prioritySchema } from './session-fields.ts';
export * from './session-info.ts';
export { sessionInfoSchema } from './session-info-schema.ts';
export { limitsSchema, withDefaultLimits } from './session-limits.ts';
export * from './session-spec.ts';
export * from './short-spec.ts';
export * from './signature.ts';
export * from './telemetry.ts';
export * from './tenant-acl.ts';
export * from './tenant-use.ts';
export * from './terminal.ts';
export * from './text.ts';
export * from './tool.ts';
export * from './trace-context.ts';
export * from './version.ts';
export * from './wake-up.ts';
export * from './wire-receipt.ts';
export * from './wire-result.ts';
export * from './worker-acl.ts';
export * from './worker-log.ts';
export { isSystemDirectory, toWorkspaceField, type Workspace, workspaceOf } from './workspace.ts';
