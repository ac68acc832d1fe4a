// The payloads of a terminal's frames.
import { MalformedFrame, readUint64 } from './frames.ts';
import { uint32s } from './messages.ts';

/** Flag of TERMINAL_OPEN that continues an existing terminal and opens no new one. */
export const TERMINAL_RESUME_ONLY = 1;
/** Most bytes of input that TERMINAL_OUTPUT has not confirmed yet, and most bytes of unacknowledged output. */
export const TERMINAL_WINDOW_BYTES = 64 << 10;

export interface KeeperTerminalSize {
  rows: number;
  columns: number;
}

export function encodeTerminalOpen({ rows, columns }: KeeperTerminalSize, env: Record<string, string>): Buffer {
  const variables = Buffer.from(
    Object.entries(env)
      .map(([name, value]) => `${name}=${value}\0`)
      .join(''),
  );
  return Buffer.concat([uint32s(rows, columns, variables.length), variables]);
}

export function encodeTerminalSize({ rows, columns }: KeeperTerminalSize): Buffer {
  return uint32s(rows, columns);
}

const TYPED_BYTES = 8;

/** Decodes TERMINAL_OUTPUT. `typed` is how many bytes of the input were written to the terminal. */
export function decodeTerminalOutput(payload: Uint8Array): { typed: number; bytes: Uint8Array } {
  if (payload.length < TYPED_BYTES)
    throw new MalformedFrame(`A terminal's output of ${payload.length} bytes; at least ${TYPED_BYTES} were expected.`);
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  return { typed: readUint64(bytes, 0), bytes: payload.subarray(TYPED_BYTES) };
}

const endReasons = ['exited', 'signalled', 'hung-up', 'no-terminal', 'too-many', 'unknown'] as const;

export interface KeeperTerminalEnd {
  reason: (typeof endReasons)[number];
  exitCode: number | null;
  signal: number;
  /** Reason when no terminal could be opened, else empty. */
  problem: string;
}

const END_BYTES = 8;

export function decodeTerminalEnd(payload: Uint8Array): KeeperTerminalEnd {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  const reason = bytes.length < END_BYTES ? undefined : endReasons[bytes[4]!];
  if (reason === undefined) throw new MalformedFrame('A TERMINAL_ENDED with an unknown reason or without one.');
  const exitCode = bytes.readInt32LE(0);
  return {
    reason,
    exitCode: exitCode < 0 ? null : exitCode,
    signal: bytes[5]!,
    problem: bytes.toString('utf8', END_BYTES),
  };
}
