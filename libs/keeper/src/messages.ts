// The payloads of frames. Every length and number from a keeper is checked, because the user controls its container.
// The fields of START have one list here and one in start.h.
import { MalformedFrame, readUint64, writeUint64 } from './frames.ts';

export const StartKind = { command: 0, restart: 1 } as const;
const FileOperationCode = {
  read: 1,
  write: 2,
  list: 3,
  stat: 4,
  remove: 5,
  mkdir: 6,
  rename: 7,
  chmod: 8,
  unpack: 9,
  pack: 10,
} as const;
const StdinKind = { none: 0, given: 1, open: 2 } as const;
/** Flags of PING, and of the PONG that answers it. */
export const Request = { processes: 1, directory: 2 } as const;
export const FileFlag = { truncate: 1, parents: 2, recursive: 4, mode: 8, exact: 16 } as const;

const helloStates = ['idle', 'running', 'ended', 'no-shell'] as const;
const endReasons = [
  'exited',
  'signalled',
  'oom',
  'wall',
  'no-output',
  'cancelled',
  'cwd',
  'syntax',
  'host-memory',
] as const;
const shellStates = ['kept', 'partial', 'lost'] as const;
/** Bytes of stdin that the worker may send ahead of INPUT_TAKEN. */
export const INPUT_WINDOW_BYTES = 1 << 20;
/** Flag of the last INPUT, and of INPUT_TAKEN when the reader has closed its end. */
export const INPUT_END = 1;

/** Reasons of a refusal, by the flags of REFUSED. */
const refusals = [
  undefined,
  'running',
  'ended',
  'begun-before',
  'busy',
  'no-shell',
  'invalid',
  'no-space',
  'other-shell',
] as const;

type HelloState = (typeof helloStates)[number];
type EndReason = (typeof endReasons)[number];
export type Refusal = NonNullable<(typeof refusals)[number]>;

export interface CommandStartPayload {
  /** No limit by default. */
  timeoutMs?: number | undefined;
  /** No limit by default. */
  noOutputTimeoutMs?: number | undefined;
  killGraceMs: number;
  script: string | Uint8Array;
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
  /** Standard input: /dev/null when undefined, the bytes of INPUT frames when `open`. */
  stdin?: Uint8Array | 'open' | undefined;
}

export function encodeCommand(command: CommandStartPayload): Buffer {
  const { stdin } = command;
  const script = typeof command.script === 'string' ? toBytes(command.script) : command.script;
  const cwd = toBytes(command.cwd ?? '');
  const env = toBytes(
    Object.entries(command.env ?? {})
      .map(([name, value]) => `${name}=${value}\0`)
      .join(''),
  );
  const numbers = uint32s(
    command.timeoutMs ?? 0,
    command.noOutputTimeoutMs ?? 0,
    command.killGraceMs,
    script.length,
    cwd.length,
    env.length,
    stdin === undefined ? StdinKind.none : stdin === 'open' ? StdinKind.open : StdinKind.given,
  );
  const given = stdin === undefined || stdin === 'open' ? NOTHING : stdin;
  return Buffer.concat([numbers, script, cwd, env, given]);
}

const NOTHING: Buffer = Buffer.alloc(0);

const toBytes = (text: string): Buffer => (text === '' ? NOTHING : Buffer.from(text));

/** Fields of FILE_CALL, which `file_parse()` in files.c reads. */
export interface FileCallPayload {
  /** 0 for no limit. */
  timeoutMs: number;
  operation: keyof typeof FileOperationCode;
  flags: number;
  path: string;
  renameTo: string;
  offset: number;
  length: number;
  data: Uint8Array;
}

export function encodeFileCall(file: FileCallPayload): Buffer {
  const path = Buffer.from(file.path);
  const renameTo = Buffer.from(file.renameTo);
  const numbers = uint32s(file.timeoutMs, FileOperationCode[file.operation], file.flags, path.length, renameTo.length);
  return Buffer.concat([numbers, uint64s(file.offset, file.length), path, renameTo, file.data]);
}

export function encodeRestart(terminationTimeoutMs: number): Buffer {
  return uint32s(Math.max(1, terminationTimeoutMs), 0, 0); // 0 would mean no limit
}

export function uint32s(...values: number[]): Buffer {
  const bytes = Buffer.allocUnsafe(4 * values.length);
  values.forEach((value, i) => {
    bytes.writeUInt32LE(Math.min(Math.max(0, Math.ceil(value)), 0xffffffff), 4 * i);
  });
  return bytes;
}

export function uint64s(...values: number[]): Buffer {
  const bytes = Buffer.allocUnsafe(8 * values.length);
  values.forEach((value, i) => {
    writeUint64(bytes, value, 8 * i);
  });
  return bytes;
}

export interface Hello {
  version: number;
  /** Oldest version of a worker with which the keeper works. */
  oldestWorker: number;
  state: HelloState;
  /** Whether the shell waits for commands in its builtin. False also before it is ready. */
  hasBuiltin: boolean;
  shellNumber: number;
  begunCount: number;
  received: { stdout: number; stderr: number };
  acked: { stdout: number; stderr: number };
  token: Uint8Array;
  problem: string;
}

const TOKEN_BYTES = 64;
const HELLO_BYTES = 16 + 32 + TOKEN_BYTES;

export function decodeHello(payload: Uint8Array): Hello {
  const bytes = bufferOf(payload, HELLO_BYTES);
  return {
    version: bytes.readUInt16LE(0),
    oldestWorker: bytes.readUInt16LE(2),
    state: oneOf(helloStates, bytes.readUInt16LE(4)),
    hasBuiltin: bytes.readUInt16LE(6) !== 0,
    shellNumber: bytes.readUInt32LE(8),
    begunCount: bytes.readUInt32LE(12),
    received: { stdout: readUint64(bytes, 16), stderr: readUint64(bytes, 24) },
    acked: { stdout: readUint64(bytes, 32), stderr: readUint64(bytes, 40) },
    token: bytes.subarray(48, 48 + TOKEN_BYTES),
    problem: bytes.toString('utf8', HELLO_BYTES),
  };
}

export interface End {
  exitCode: number | null;
  reason: EndReason;
  shellState: (typeof shellStates)[number];
  shellReason: string;
  signal: number;
  shellNumber: number;
  runMs: number;
  totals: { stdout: number; stderr: number };
  /** What the sandbox used meanwhile. Undefined when the kernel does not count it. */
  usage: { processorMicros: number; memoryPeakBytes: number } | undefined;
  /** Whether the shell waits for commands in its builtin. */
  hasBuiltin: boolean;
}

const END_BYTES = 48;
const USAGE_IS_KNOWN = 1;
const HAS_BUILTIN = 2;

export function decodeEnd(payload: Uint8Array): End {
  const bytes = bufferOf(payload, END_BYTES);
  const exitCode = bytes.readInt32LE(0);
  const usage = { processorMicros: readUint64(bytes, 32), memoryPeakBytes: readUint64(bytes, 40) };
  return {
    exitCode: exitCode < 0 ? null : exitCode,
    reason: oneOf(endReasons, bytes[4]!),
    shellState: oneOf(shellStates, bytes[5]!),
    signal: bytes[6]!,
    shellNumber: bytes.readUInt32LE(8),
    runMs: bytes.readUInt32LE(12),
    totals: { stdout: readUint64(bytes, 16), stderr: readUint64(bytes, 24) },
    usage: bytes[7]! & USAGE_IS_KNOWN ? usage : undefined,
    hasBuiltin: (bytes[7]! & HAS_BUILTIN) !== 0,
    shellReason: bytes.toString('utf8', END_BYTES),
  };
}

export function decodeRefusal(flags: number): Refusal {
  const refusal = refusals[flags];
  if (!refusal) throw new MalformedFrame(`A refusal of unknown kind ${flags}.`);
  return refusal;
}

export interface FileEnd {
  /** Linux errno of an operation that failed, else 0. */
  errno: number;
  /** Signal that killed the call, else 0. */
  signal: number;
  refusal: Refusal | undefined;
  totals: { stdout: number; stderr: number };
}

const FILE_END_BYTES = 24;

export function decodeFileEnd(payload: Uint8Array): FileEnd {
  const bytes = bufferOf(payload, FILE_END_BYTES);
  const refusal = bytes.readUInt16LE(2);
  return {
    errno: bytes[0]!,
    signal: bytes[1]!,
    refusal: refusal === 0 ? undefined : decodeRefusal(refusal),
    totals: { stdout: readUint64(bytes, 8), stderr: readUint64(bytes, 16) },
  };
}

const MAX_LOG_CHARACTERS = 200;

/** Reasons for which a keeper could not start or be installed, by the exit codes of wire.h. */
const keeperExits: Record<number, string> = {
  101: 'Its keeper was not the first process of its own pid namespace.',
  102: 'Its keeper was started with wrong arguments.',
  103: 'Its keeper was given no token, or no valid keys.',
  104: 'Its keeper cannot write to its directory.',
  105: 'Its keeper had too little memory, or too few descriptors.',
  106: 'The directory mounted as its workspace is not the one that was checked: another session changed the path meanwhile, or the engine runs on another kernel.',
  107: 'Its keeper cannot listen on its port.',
  108: 'The keeper cannot read its own program, and so not be copied into the sandbox.',
  109: 'The volume for the keeper cannot be written to.',
  110: 'The volume for the keeper has too little space.',
};

/** Returns why a keeper could not start, or undefined for an exit code that is not one of the keeper's. */
export function describeKeeperExit(exitCode: number | null): string | undefined {
  return exitCode === null ? undefined : keeperExits[exitCode];
}

/** Returns the text of a LOG frame, without control characters. */
export function decodeLogMessage(payload: Uint8Array): string {
  const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8');
  return text.replaceAll(/\p{Cc}/gu, ' ').slice(0, MAX_LOG_CHARACTERS);
}

export function decodeProcesses(payload: Uint8Array): { pid: number; command: string }[] {
  return textsOf(payload).map((text) => {
    const space = text.indexOf(' ');
    return { pid: Number.parseInt(text.slice(0, space), 10), command: text.slice(space + 1) };
  });
}

/** Returns the path of a directory, or undefined when the payload is not one in UTF-8. */
export function decodeDirectory(payload: Uint8Array): string | undefined {
  const path = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  const text = path.toString('utf8');
  return text.startsWith('/') && path.equals(Buffer.from(text)) ? text : undefined;
}

export function textsOf(bytes: Uint8Array): string[] {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8').split('\0').slice(0, -1);
}

function bufferOf(payload: Uint8Array, least: number): Buffer {
  if (payload.length < least)
    throw new MalformedFrame(`A payload of ${payload.length} bytes; at least ${least} were expected.`);
  return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
}

function oneOf<T>(values: readonly T[], index: number): T {
  const value = values[index];
  if (value === undefined) throw new MalformedFrame(`An unknown value ${index}.`);
  return value;
}
