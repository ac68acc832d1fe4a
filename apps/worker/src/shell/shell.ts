// One live, persistent shell in a sandbox, as the worker sees it. It outlives this process.
//
// Sh1. One entry at a time: start() only when nothing runs (else onRefused says `busy`).
// Sh2. An entry that has begun once never begins again: a second start() of its id ends in onRefused.
// Sh3. Output comes in order, per stream, without gap or repetition, from the offset named in resume() or from 0 after start().
//      Bytes stay with the keeper until ack() says that they are stored, so nothing is lost when this process dies.
// Sh4. onEnd comes after the last output of its entry. What its background processes print later comes as onLate.
// Sh5. After onDisconnect no other handler is called; the shell itself lives on and waits to be adopted.

import type { ShellTerminals } from './shell-terminals.ts';

/** The ULID of a command id (`<sessionId>.<ULID>`): 26 characters. Entries of the worker's own (startup commands) take a fresh one. */
export type EntryId = string;

export type OutputStream = 'stdout' | 'stderr';

export interface StreamOffsets {
  stdout: number;
  stderr: number;
}

export interface CommandStart {
  type: 'command';
  entryId: EntryId;
  script: string | Uint8Array;
  /** For this command only; does not stick. Names `[A-Za-z_][A-Za-z0-9_]*`, values without NUL. */
  env?: Record<string, string>;
  /** For this command only; the shell's own directory is what it was before, afterwards. A missing one ends as reason `cwd`, nothing run. */
  cwd?: string;
  /** Default: /dev/null. Open: what input() brings. */
  stdin?: Uint8Array | 'open';
  /** From the first byte to the shell. Omitted: no limit. */
  timeoutMs?: number;
  noOutputTimeoutMs?: number;
  /** The whole stop ladder, for a deadline and for stop() without its own. */
  killGraceMs?: number;
}

/** Runs as the container's user. Its bytes come as stdout of the entry. Paths are absolute. */
export type FileOperation =
  /** stdout: the bytes from offset, at most length. */
  | { type: 'read'; path: string; offset: number; length: number }
  /** Writes at offset of `path`; then, with renameTo, puts it there in one step (write to a temporary name, rename with the last part). */
  | {
      type: 'write';
      path: string;
      offset: number;
      data: Uint8Array;
      truncate?: boolean;
      parents?: boolean;
      renameTo?: string;
    }
  /** stdout: parseFileRecords() of @shellfleet/keeper reads it. */
  | { type: 'list'; path: string }
  | { type: 'stat'; path: string }
  | { type: 'remove'; path: string; recursive?: boolean };

export interface FileStart {
  type: 'file';
  entryId: EntryId;
  operation: FileOperation;
  timeoutMs?: number;
}

/** Ends the shell (its EXIT trap runs, its output is this entry's), then everything else in the sandbox, and starts a fresh shell. */
export interface RestartStart {
  type: 'restart';
  entryId: EntryId;
  terminationTimeoutMs: number;
}

export type ShellStart = CommandStart | FileStart | RestartStart;

export type ShellState = 'kept' | 'partial' | 'lost';

export type ShellEndReason =
  | 'exited'
  /** The shell (or the file operation) itself died by a signal. */
  | 'signalled'
  /** Something of this entry was killed for want of memory. */
  | 'oom'
  | 'wall'
  | 'no-output'
  | 'cancelled'
  /** The cwd given does not exist or may not be entered: nothing was run. */
  | 'cwd'
  /** The script ends inside a here-document or another open construct: nothing was run. */
  | 'syntax';

export type FileFailure = 'not-found' | 'is-directory' | 'denied' | 'path-invalid' | 'too-large' | 'no-space' | 'other';

export interface ShellEnd {
  reason: ShellEndReason;
  exitCode: number | null;
  /** `SIGKILL`, …: only where the keeper itself saw it. */
  signal: string | null;
  /** Covers the span since the end of the entry before. */
  shell: { state: ShellState; reason?: string; shellNumber: number };
  totals: StreamOffsets;
  runMs: number;
  /** A file operation that failed; the text is on stderr. */
  fileFailure?: FileFailure;
}

/** What the keeper said when we (re)connected. */
export interface ShellHello {
  /** `ended`: the entry's end has not been followed by another start; resume() sends output from the offsets given, then the end, again. */
  state: 'idle' | 'running' | 'ended' | 'no-shell';
  /** Of the entry that runs, or that ran last. */
  entryId: EntryId | null;
  /** Received from the entry so far. */
  received: StreamOffsets;
  /** Acknowledged as stored so far: the least offset that resume() may name. */
  acked: StreamOffsets;
  /** Counts the shells of this sandbox, from 1; rises when a fresh shell replaces one. */
  shellNumber: number;
  /** How many entries have begun, ever. */
  begunCount: number;
  /** With `no-shell`: why. */
  problem?: string;
}

export interface BackgroundProcess {
  pid: number;
  command: string;
}

export type RefusalReason =
  /** This id runs now: resume() it. */
  | 'running'
  /** This id was the last to run and has ended: resume() brings its output and end. */
  | 'ended'
  /** This id began at some time before; nothing more is known here. */
  | 'begun-before'
  /** Another entry runs. */
  | 'busy'
  | 'no-shell'
  | 'invalid'
  /** The keeper's folder in the sandbox is full. */
  | 'no-space';

export interface ShellHandlers {
  onOutput(entryId: EntryId, stream: OutputStream, offset: number, bytes: Uint8Array): void;
  /** Output of a background process that outlived its command. The offset goes on from the command's own: a jump is a loss. Empty: nothing more comes. */
  onLate(entryId: EntryId, stream: OutputStream, offset: number, bytes: Uint8Array): void;
  onEnd(entryId: EntryId, end: ShellEnd): void;
  /** Of an open stdin: so much was given to its pipe, since the entry's start. Comes after every resume() too. `readerClosed`: nobody reads it any more. */
  onInputTaken?(entryId: EntryId, offset: number, readerClosed: boolean): void;
  onRefused(entryId: EntryId, reason: RefusalReason): void;
  /** A fresh shell took the place of one that died while nothing ran, or at a restart. */
  onShell(shell: { shellNumber: number; reason: string }): void;
  onDisconnect(reason: DisconnectReason): void;
}

export type DisconnectReason =
  | 'closed'
  /** A higher fence claimed the shell: we own it no more. */
  | 'fenced'
  /** Nothing was heard for too long. */
  | 'silent'
  /** What arrived was not our protocol. */
  | 'malformed'
  /** We called disconnect() or end(). */
  | 'released';

export interface Shell {
  readonly hello: ShellHello;
  /** Beside its entries: neither waits for the other. */
  readonly terminals: ShellTerminals;
  /** To be called once, right after the shell was opened; nothing is delivered before. */
  on(handlers: ShellHandlers): void;
  start(entry: ShellStart): void;
  /** Stored durably up to here: the keeper may forget it. */
  ack(entryId: EntryId, stream: OutputStream, offset: number): void;
  /** After adoption of a running or ended entry: send output from these offsets on, or from where it was acknowledged if that is further. Nothing of it comes before this call. */
  resume(entryId: EntryId, offsets: StreamOffsets): void;
  /** Cancels: ends as `cancelled` within killGraceMs, partial output kept. Too late is not an error. */
  stop(entryId: EntryId, options: { killGraceMs: number }): void;
  /**
   * Bytes of an open stdin, from this offset; those that came before are not taken twice. At most INPUT_WINDOW_BYTES beyond what
   * onInputTaken said. `end`: nothing follows. Of an entry that does not run: ignored.
   */
  input(entryId: EntryId, offset: number, bytes: Uint8Array, end: boolean): void;
  /** While storage is away the keeper's clocks stand still. */
  storage(state: 'away' | 'back'): void;
  /** What runs in the sandbox besides shell and keeper. */
  background(options?: { signal?: AbortSignal }): Promise<BackgroundProcess[]>;
  /** Back-pressure: stop and go on reading from the keeper. */
  pause(): void;
  resumeReading(): void;
  /** Runs the EXIT trap, ends everything in the sandbox, then the keeper (so the container). Resolves when it is gone, or rejects at the deadline. */
  end(options: { terminationTimeoutMs: number }): Promise<void>;
  /** Leaves the shell alive for the next to adopt. */
  disconnect(): void;
}
