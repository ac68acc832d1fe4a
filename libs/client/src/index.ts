export type {
  FileInfo,
  HostInfo,
  LogChunk,
  Outcome,
  OutputChunk,
  Result,
  SessionEvent,
  SessionInfo,
  SessionSpec,
  SessionState,
  ToolError,
  ToolErrorCode,
  ToolEvent,
  ToolInfo,
  ToolResult,
} from '@shellfleet/protocol';
export { isShellfleetError, OUTPUT_PROFILES, ShellfleetError, TIMEOUT_PROFILES } from '@shellfleet/protocol';
export type { Batch } from './batch/batch.ts';
export { mergeSpecs } from './batch/expand-task.ts';
export type { BatchOptions, BatchTotals, Task, TaskResult } from './batch/task.ts';
export type { Command, FollowOptions } from './command.ts';
export type { ConnectOptions } from './connect-settings.ts';
export type { Files } from './files/files.ts';
export { Fleet } from './fleet.ts';
export { type FleetFile, fleetFilePath, readFleetFile, removeFleetFile, writeFleetFile } from './fleet-file.ts';
export { type ModelText, type ModelTextOptions, toModelText } from './model-text.ts';
export type { SessionFilter } from './read/list-sessions.ts';
export { oneShotSessionId } from './run-one-shot.ts';
export type { Session } from './session.ts';
export type { LogOptions } from './stream/command-log.ts';
export type { SubmitInput, SubmitInterceptor, SubmitReceipt } from './submit/interceptors.ts';
export type { SessionOptions } from './submit/open-session.ts';
export { checkCommand, type RunOptions } from './submit/parse-command.ts';
export type { AttachOptions } from './terminal/open-terminal.ts';
export type { Terminal, TerminalEnd } from './terminal/terminal.ts';
export type { ToolCallOptions } from './tools/call-tool.ts';
export type { Tools } from './tools/tools.ts';
