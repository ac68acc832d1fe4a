export { ENTRY_ID_BYTES, entryIdFromBytes, entryIdToBytes, toEntryId } from './entry-id.ts';
export {
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameType,
  HEADER_BYTES,
  MAX_FROM_KEEPER,
  MAX_TO_KEEPER,
  MalformedFrame,
  PROTOCOL_VERSION,
  SYNC_BYTES,
} from './frames.ts';
export { keeperPath, launcherPath } from './keeper-path.ts';
export {
  type CommandPayload,
  decodeEnd,
  decodeHello,
  decodeProcesses,
  decodeRefusal,
  type End,
  EntryKind,
  encodeCommand,
  encodeFile,
  encodeRestart,
  FileFlag,
  type FilePayload,
  type FileRecord,
  type Hello,
  parseFileRecords,
  uint32s,
  uint64s,
} from './messages.ts';
export {
  decodeTerminalEnd,
  decodeTerminalOutput,
  encodeTerminalOpen,
  encodeTerminalSize,
  TERMINAL_RESUME_ONLY,
  TERMINAL_WINDOW_BYTES,
  type TerminalEnd,
  type TerminalSize,
} from './terminal-messages.ts';
