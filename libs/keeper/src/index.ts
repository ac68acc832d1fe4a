export { EGRESS_PORT } from './egress-port.ts';
export { ENTRY_ID_BYTES, entryIdFromBytes, entryIdToBytes, toEntryId } from './entry-id.ts';
export {
  decodeExamined,
  type Examination,
  encodeExamine,
  MOST_PROBES,
  type ProbeResult,
} from './examination.ts';
export {
  encodeEntries,
  type ListedFile,
  PACKED_ENTRY_BYTES,
  type PackedEntry,
  type PackedFile,
  parseFileRecords,
  parsePackedFiles,
} from './file-records.ts';
export {
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameType,
  HEADER_BYTES,
  KEEPER_PROTOCOL_VERSION,
  MAX_FROM_KEEPER,
  MAX_TO_KEEPER,
  MalformedFrame,
  OLDEST_KEEPER_PROTOCOL,
  SYNC_BYTES,
} from './frames.ts';
export { isPrebuilt, keeperPath, launcherPath } from './keeper-path.ts';
export {
  type CommandStartPayload,
  decodeDirectory,
  decodeEnd,
  decodeFileEnd,
  decodeHello,
  decodeLogMessage,
  decodeProcesses,
  decodeRefusal,
  describeKeeperExit,
  type End,
  encodeCommand,
  encodeFileCall,
  encodeRestart,
  type FileEnd,
  FileFlag,
  type Hello,
  INPUT_END,
  INPUT_WINDOW_BYTES,
  Request,
  StartKind,
  uint32s,
  uint64s,
} from './messages.ts';
export { MissingBuildTool } from './missing-build-tool.ts';
export { LinkInitiator } from './noise/link-initiator.ts';
export type { LinkMessages } from './noise/link-messages.ts';
export {
  decodeTerminalEnd,
  decodeTerminalOutput,
  encodeTerminalOpen,
  encodeTerminalSize,
  type KeeperTerminalEnd,
  type KeeperTerminalSize,
  TERMINAL_RESUME_ONLY,
  TERMINAL_WINDOW_BYTES,
} from './terminal-messages.ts';
