// One persistent shell in a sandbox, as the worker uses it. The shell outlives this process.
// SHELL-1. One entry at a time: start() while an entry runs is refused (`busy`).
// SHELL-2. An entry begins at most once: a second start() of its id is refused.
// SHELL-3. Each stream's output arrives in order, without gaps or repetition, from 0 after start(), from the received
//          bytes after resume(). The keeper keeps bytes until ack(), so nothing is lost when this process dies.
// SHELL-4. An entry's end follows its last output. Later output of its background processes arrives through onLate.
// SHELL-5. After onGone no other handler is called. The shell stays alive and can be adopted.

import type { ExecutionOptions, ShellWay, StreamName, Usage } from '@shellfleet/protocol';
import type { ShellFiles } from './shell-files.ts';
import type { ShellTerminals } from './shell-terminals.ts';

/** ULID of a command id (`<sessionId>.<ULID>`): 26 characters. Startup and shutdown commands have new ones. */
export type EntryUlid = string;

export interface StreamOffsets {
  stdout: number;
  stderr: number;
}

/** A script for the shell, without a time limit if `timeoutMs` is absent. A missing `cwd` ends it as `cwd`, unrun. */
export interface CommandStart extends ExecutionOptions {
  type: 'command';
  entryId: EntryUlid;
  script: string | Uint8Array;
  /** Stdin of the script: these bytes, or those of input() (`open`). Absent means /dev/null. */
  stdin?: Uint8Array | 'open' | undefined;
  /** Number of the only shell on which the command may run. Another one refuses it (`other-shell`). */
  shellNumber?: number;
}

/** Ends the shell, then all other processes, and starts a fresh one. Output of the EXIT trap belongs to the entry. */
export interface RestartStart {
  type: 'restart';
  entryId: EntryUlid;
  terminationTimeoutMs: number;
}

export type ShellStart = CommandStart | RestartStart;

export type ShellState = 'kept' | 'partial' | 'lost';

export type ShellEndReason =
  | 'exited'
  /** A signal ended the shell itself. */
  | 'signalled'
  /** The kernel killed a process of this entry because the sandbox reached its limit of memory. */
  | 'oom'
  /** The kernel killed a process of this entry because the memory of the whole host ran out. */
  | 'host-memory'
  | 'wall'
  | 'no-output'
  | 'cancelled'
  /** The cwd does not exist or may not be entered. Nothing has run. */
  | 'cwd'
  /** The script ends inside a here-document or another open construct. Nothing has run. */
  | 'syntax';

export interface ShellEnd {
  reason: ShellEndReason;
  exitCode: number | null;
  /** `SIGKILL` etc., only if the keeper itself observed it. */
  signal: string | null;
  /** State of the shell since the end of the previous entry. */
  shell: { state: ShellState; reason?: string; shellNumber: number };
  totals: StreamOffsets;
  runMs: number;
  way: ShellWay;
  /** What the sandbox used meanwhile. Absent when the kernel does not count it. */
  usage?: Usage;
}

/** The keeper's report at the beginning of a connection. */
export interface ShellHello {
  /** State of the shell. If `ended`, the last entry has ended and none followed, so resume() repeats its end. */
  state: 'idle' | 'running' | 'ended' | 'no-shell';
  /** The entry that runs, or that ran last. */
  entryId: EntryUlid | null;
  /** Bytes that the entry has printed so far. */
  received: StreamOffsets;
  /** Bytes acknowledged as stored: the lowest offset for resume(). */
  acked: StreamOffsets;
  /** Number of the current shell of this sandbox, from 1; a replacement has the next number. */
  shellNumber: number;
  /** Number of entries that ever began. */
  begunCount: number;
  /** Absent before the first command. */
  way?: ShellWay;
  /** Why there is no shell (`no-shell`). */
  problem?: string;
}

export interface BackgroundProcess {
  pid: number;
  command: string;
}

export type RefusalReason =
  /** This id runs now: call resume(). */
  | 'running'
  /** This id ran last and has ended: resume() sends its output and end. */
  | 'ended'
  /** This id began earlier, and how it ended is unknown here. */
  | 'begun-before'
  /** Another entry runs. */
  | 'busy'
  | 'no-shell'
  | 'invalid'
  /** The keeper's directory in the sandbox is full. */
  | 'no-space'
  /** A fresh shell has replaced the one that the command is for. */
  | 'other-shell';

/** How an entry ended on one connection. `gone`: the connection broke, so its end is unknown. */
export type EntryEnd =
  | { type: 'ended'; end: ShellEnd }
  | { type: 'refused'; reason: RefusalReason }
  | { type: 'gone'; reason: DisconnectReason };

/** Receives the events of a running entry, on one connection after another. */
export interface EntryHandlers {
  /** Receives raw output. `bytes` are freed when it returns. */
  onOutput(stream: StreamName, offset: number, bytes: Uint8Array): void;
  /** Returns the number of received raw bytes of each stream, from which resume() continues. */
  received(): StreamOffsets;
  /** Reports that the entry was started or resumed on this connection. */
  onFollowed?(shell: Shell, how: 'start' | 'resume'): void;
  /** Reports up to which offset the pipe of an open stdin has taken bytes. Also called after every resume(). */
  onInputTaken?(offset: number, readerClosed: boolean): void;
}

/** Receives events of a connection that do not belong to the running entry. */
export interface ShellEvents {
  /** Late output. Its offsets continue those of the command; a jump means lost bytes. Empty bytes end the stream. */
  onLate(entryId: EntryUlid, stream: StreamName, offset: number, bytes: Uint8Array): void;
  /** Reports a fresh shell after a restart or a death without an entry, and before each refusal as `other-shell`. */
  onShell(shell: { shellNumber: number; reason: string }): void;
  onGone(reason: DisconnectReason): void;
}

export type DisconnectReason =
  | 'closed'
  /** A worker with a higher fence claimed the shell. */
  | 'fenced'
  /** The keeper sent nothing for too long. */
  | 'silent'
  /** A malformed message arrived. */
  | 'malformed'
  /** disconnect() or end() was called. */
  | 'released';

/** One connection to a shell. At most one entry is followed at a time. */
export interface Shell {
  readonly hello: ShellHello;
  readonly connected: boolean;
  /** How commands get into the shell. Undefined before its first command. */
  readonly way: ShellWay | undefined;
  /** Terminals and entries do not wait for each other. */
  readonly terminals: ShellTerminals;
  /** File operations, which wait neither for the entry nor for each other. */
  readonly files: ShellFiles;
  /** Sets the handlers, once, directly after opening. Events are held until then. */
  on(events: ShellEvents): void;
  /** Starts an entry, and resolves with its end. */
  start(entry: ShellStart, handlers: EntryHandlers): Promise<EntryEnd>;
  /** Reports that output before `offset` is stored durably, so that the keeper may delete it. */
  ack(entryId: EntryUlid, stream: StreamName, offset: number): void;
  /** Follows an entry that runs, or ended last, to its end. Output continues after received or acknowledged bytes. */
  resume(entryId: EntryUlid, handlers: EntryHandlers): Promise<EntryEnd>;
  /** Cancels an entry: it ends as `cancelled` within killGraceMs and keeps its output. Ignored after its end. */
  stop(entryId: EntryUlid, options: { killGraceMs: number }): void;
  /** Sends bytes of an open stdin, at most INPUT_WINDOW_BYTES beyond onInputTaken. `end` closes the stdin. */
  input(entryId: EntryUlid, offset: number, bytes: Uint8Array, end: boolean): void;
  /** Stops the keeper's clocks while storage is away. */
  storage(state: 'away' | 'back'): void;
  /** Lists the processes in the sandbox besides shell and keeper. */
  background(options?: { signal?: AbortSignal }): Promise<BackgroundProcess[]>;
  /** Returns the directory of the shell, or of `path` relative to it, with links resolved. Undefined if none. */
  directory(options?: { path?: string; signal?: AbortSignal }): Promise<string | undefined>;
  /** Stops reading from the keeper until resumeReading() (backpressure). */
  pause(): void;
  resumeReading(): void;
  /** Runs the EXIT trap, ends all processes, then the keeper. Resolves when it is gone; rejects at the deadline. */
  end(options: { terminationTimeoutMs: number }): Promise<void>;
  /** Leaves the shell alive for the next owner. */
  disconnect(): void;
}
