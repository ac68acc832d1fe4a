export type { AuditChainState, SealedAuditRecords } from '@shellfleet/mailbox';
export type { FleetDemand, HostCounts } from '@shellfleet/placement';
export type {
  ApiKeyInfo,
  AppliedConfiguration,
  Approval,
  ApprovalAnsweredData,
  ApprovalPolicy,
  ApprovalRequestedData,
  ApprovalScope,
  ApprovalState,
  ApprovalsConfiguration,
  AskByDefault,
  AuditChainName,
  AuditHead,
  BlockedOutput,
  BlockedResult,
  BubblewrapPolicy,
  Caller,
  CancellationResult,
  CodexPolicy,
  ColdReason,
  CommandEventType,
  DenialResult,
  DockerPolicy,
  EntryPayload,
  ErrorCode,
  ErrorResult,
  Escalation,
  EventType,
  ExecutionOptions,
  ExecutionPolicy,
  FailureResult,
  FileInfo,
  FirstAttempt,
  FleetConfiguration,
  FleetConfigurationInput,
  FleetEvent,
  FleetGapEvent,
  FleetHostEvent,
  FleetHostEventType,
  FleetSessionEvent,
  FleetSessionEventData,
  FleetSessionEventType,
  HostGate,
  HostImage,
  HostInfo,
  HostPolicy,
  HostPool,
  KeptSandbox,
  KubernetesPolicy,
  LimitOptions,
  LogChunk,
  LostResult,
  NetworkAccess,
  OmittedBecause,
  OpenStdin,
  Outcome,
  OutputChunk,
  OutputOptions,
  PolicyName,
  PrefixRule,
  Receipt,
  ReceiptPart,
  ReceiptStep,
  RedactionRule,
  RejectedQuestions,
  Result,
  ResultFields,
  RunningPull,
  RunOptionsInput,
  SandboxDenied,
  SandboxMode,
  SandboxOptions,
  Scope,
  SessionEvent,
  SessionEventData,
  SessionEventFields,
  SessionInfo,
  SessionSpec,
  SessionState,
  ShellEventData,
  ShellWay,
  StdinSource,
  StreamName,
  SuccessResult,
  TenantConfiguration,
  TimeoutResult,
  ToolCallEvent,
  ToolError,
  ToolErrorCode,
  ToolEvent,
  ToolInfo,
  ToolOffer,
  ToolResult,
  Usage,
  WireError,
} from '@shellfleet/protocol';
export { DEFAULTS, isShellfleetError, OUTPUT_PROFILES, ShellfleetError, TIMEOUT_PROFILES } from '@shellfleet/protocol';
export type { Approvals, ApproveOptions, DenyOptions } from './approvals/approvals.ts';
export { describePattern, describeQuestion } from './approvals/describe-question.ts';
export type { ApprovalFilter } from './approvals/list-approvals.ts';
export type { Batch, BatchEvents, Tasks } from './batch/batch.ts';
export type { BatchOptions, BatchTotals } from './batch/batch-options.ts';
export type { BatchProgress } from './batch/batch-progress.ts';
export { checkTask, checkTasks, type PlacedTask, type TaskList } from './batch/check-task.ts';
export type { BatchManifest } from './batch/manifest.ts';
export { readBatchManifest } from './batch/manifest-file.ts';
export { readBatchResults } from './batch/results-file.ts';
export type { Task } from './batch/task.ts';
export {
  type EndedBy,
  type TaskOutput,
  type TaskResult,
  type TaskStep,
  type TaskVerdict,
  taskResultReplySchema,
  verdictOf,
} from './batch/task-result.ts';
export { type BatchReportOptions, writeBatchReport } from './batch-report/write-batch-report.ts';
export type { Command, CommandInfo, FollowOptions } from './command.ts';
export type { ConnectOptions } from './connect-settings.ts';
export type { AttachBatchOptions } from './detached/attach-batch.ts';
export { detachedBatchSchema } from './detached/detached-batch-schema.ts';
export type { DetachedBatches } from './detached/detached-batches.ts';
export type { DetachedBatch } from './detached/detached-info.ts';
export type { SubmitOptions } from './detached/submit-batch.ts';
export type {
  FileOptions,
  Files,
  ListOptions,
  OpenedFile,
  RemoveOptions,
  StreamOptions,
  TransferOptions,
  TransferProgress,
} from './files/files.ts';
export { Fleet } from './fleet.ts';
export { type FleetFile, fleetFilePath, readFleetFile, removeFleetFile, writeFleetFile } from './fleet-file.ts';
export type { ApplyOptions } from './hosts/apply-configuration.ts';
export type { DrainOptions } from './hosts/drain-host.ts';
export { FleetHosts } from './hosts/fleet-hosts.ts';
export type { PruneImagesOptions, PullImageOptions } from './hosts/host-images.ts';
export type { HostLogLine, HostLogOptions } from './hosts/host-log.ts';
export type { ApiKeys } from './keys/api-keys.ts';
export type { CreatedApiKey, CreateKeyOptions } from './keys/create-key.ts';
export { type ModelText, type ModelTextOptions, markStderr, toModelText } from './model-text.ts';
export type { FleetEventOptions } from './read/fleet-events.ts';
export type { FleetLoad, SessionNumbers, TenantLoad, WaitReason } from './read/fleet-load.ts';
export type { SessionFilter } from './read/list-sessions.ts';
export { fleetLoadSchema, tenantInfoSchema } from './read/load-schemas.ts';
export type { ReadAuditOptions } from './read/read-audit.ts';
export type { TenantInfo } from './read/read-tenants.ts';
export { lacksSealKey } from './read/session-info.ts';
export { oneShotSessionId } from './run-one-shot.ts';
export type { Session } from './session.ts';
export type { WriteOptions } from './stdin/write-stdin.ts';
export type { LogOptions } from './stream/command-log.ts';
export type { LogRange } from './stream/log-window.ts';
export type { SubmitInput, SubmitInterceptor, SubmitReply } from './submit/interceptors.ts';
export type { SessionOptions } from './submit/open-session.ts';
export { checkCommand, type RunOptions } from './submit/parse-command.ts';
export type { AttachOptions } from './terminal/open-terminal.ts';
export type { Terminal, TerminalEnd } from './terminal/terminal.ts';
export type { ToolCallOptions } from './tools/call-tool.ts';
export type { ToolFilter } from './tools/list-tools.ts';
export type { Tools } from './tools/tools.ts';
export type { ToolWait } from './tools/why-it-waits.ts';
