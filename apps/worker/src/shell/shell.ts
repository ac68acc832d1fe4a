// One persistent shell in a sandbox, as the worker uses it. The shell outlives this process.
//
// SHELL-1. One entry at a time: start() while an entry runs is refused (`busy`).
// SHELL-2. An entry begins at most once: a second start() of its id is refused.
// SHELL-3. Output arrives in order, per stream, without gaps or repetition: after start() from 0, after resume() from
//          the bytes that were received. The keeper holds bytes until ack() reports them as stored, so nothing is lost
//          when this process dies.
// SHELL-4. An entry's end follows its last output. Output of its background processes after that arrives through
//          onLate.
// SHELL-5. After onGone no other handler is called. The shell stays alive and can be adopted.

import type { ExecutionOptions, StreamName } from '@shellfleet/protocol';
import type { ShellFiles } from './shell-files.ts';
import type { ShellTerminals } from './shell-terminals.ts';

/** The ULID of a command id (`<sessionId>.<ULID>`): 26 characters. Startup and shutdown commands have new ones. */
export type EntryUlid = string;

export interface StreamOffsets {
  stdout: number;
  stderr: number;
}

/**
 * A script for the shell. Without a `timeoutMs` there is no limit. A `cwd` that does not exist ends the entry with the
 * reason `cwd`, and nothing runs.
 */
export interface CommandStart extends ExecutionOptions {
  type: 'command';
  entryId: EntryUlid;
  script: string | Uint8Array;
  /** The script's stdin: these bytes, those that input() sends (`open`), or /dev/null when it is absent. */
  stdin?: Uint8Array | 'open' | undefined;
  /** Number of the only shell on which the command may run: on another it is refused (`other-shell`). */
  shellNumber?: number;
}

/**
 * Ends the shell, then all other processes of the sandbox, and starts a fresh shell. Output of the EXIT trap belongs to
 * this entry.
 */
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
  /** The kernel killed a process of this entry because memory ran out. */
  | 'oom'
  | 'wall'
  | 'no-output'
  | 'cancelled'
  /** The cwd does not exist or may not be entered: nothing was run. */
  | 'cwd'
  /** The script ends inside a here-document or another open construct: nothing was run. */
  | 'syntax';

export interface ShellEnd {
  reason: ShellEndReason;
  exitCode: number | null;
  /** `SIGKILL`, …: only when the keeper itself observed it. */
  signal: string | null;
  /** Since the end of the previous entry. */
  shell: { state: ShellState; reason?: string; shellNumber: number };
  totals: StreamOffsets;
  runMs: number;
}

/** The keeper's report when a connection is made. */
export interface ShellHello {
  /**
   * State of the shell. When it is `ended`, no entry has started since the last one ended, and resume() repeats that
   * one's end and its output from the received bytes on.
   */
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
  /** This id began earlier; its fate is not known here. */
  | 'begun-before'
  /** Another entry runs. */
  | 'busy'
  | 'no-shell'
  | 'invalid'
  /** The keeper's folder in the sandbox is full. */
  | 'no-space'
  /** A fresh shell has replaced the one that the command is for. */
  | 'other-shell';

/** How an entry ended on one connection. `gone`: the connection broke, and the fate of the entry is not known here. */
export type EntryEnd =
  | { type: 'ended'; end: ShellEnd }
  | { type: 'refused'; reason: RefusalReason }
  | { type: 'gone'; reason: DisconnectReason };

/** Receives what one entry does while it runs, on one connection after another. */
export interface EntryHandlers {
  /** Receives raw output. `bytes` are freed when it returns. */
  onOutput(stream: StreamName, offset: number, bytes: Uint8Array): void;
  /** Returns how many raw bytes of each stream were received so far: resume() continues there. */
  received(): StreamOffsets;
  /** The entry was started or resumed on this connection. */
  onFollowed?(shell: Shell, how: 'start' | 'resume'): void;
  /**
   * The pipe of an open stdin has taken the bytes before `offset`. `readerClosed`: no process reads it any more.
   * Also called after every resume().
   */
  onInputTaken?(offset: number, readerClosed: boolean): void;
}

/** Receives what happens on a connection beside the entry that runs. */
export interface ShellEvents {
  /** Late output. Its offsets continue those of the command; a jump means lost bytes. Empty bytes end the stream. */
  onLate(entryId: EntryUlid, stream: StreamName, offset: number, bytes: Uint8Array): void;
  /**
   * A fresh shell replaced one that died while no entry ran, or at a restart.
   * Also called before every refusal as `other-shell`.
   */
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
  /** Terminals and entries do not wait for each other. */
  readonly terminals: ShellTerminals;
  /** File operations: each is a call that waits neither for the entry nor for other calls. */
  readonly files: ShellFiles;
  /** To be called once, directly after opening. Events are held until then. */
  on(events: ShellEvents): void;
  /** Starts an entry, and resolves with its end. */
  start(entry: ShellStart, handlers: EntryHandlers): Promise<EntryEnd>;
  /** Output before `offset` is stored durably: the keeper may delete it. */
  ack(entryId: EntryUlid, stream: StreamName, offset: number): void;
  /**
   * Follows an entry that runs, or that ended last, and resolves with its end. Its output goes on where `handlers`
   * have received it, or at the acknowledged offsets if those are higher: the keeper has deleted the bytes before.
   */
  resume(entryId: EntryUlid, handlers: EntryHandlers): Promise<EntryEnd>;
  /**
   * Cancels an entry: it ends as `cancelled` within killGraceMs and keeps its output so far. Ignored when it has ended.
   */
  stop(entryId: EntryUlid, options: { killGraceMs: number }): void;
  /**
   * Sends bytes of an open stdin from `offset` on; bytes sent before are ignored. At most INPUT_WINDOW_BYTES beyond the
   * last offset of onInputTaken. `end` closes the stdin. Ignored when the entry does not run.
   */
  input(entryId: EntryUlid, offset: number, bytes: Uint8Array, end: boolean): void;
  /** Stops the keeper's clocks while storage is away. */
  storage(state: 'away' | 'back'): void;
  /** Lists the processes in the sandbox besides shell and keeper. */
  background(options?: { signal?: AbortSignal }): Promise<BackgroundProcess[]>;
  /**
   * Returns the directory of the shell or, with a `path`, the one to which that leads from there: as the kernel has it,
   * without links. Undefined when there is no such directory.
   */
  directory(options?: { path?: string; signal?: AbortSignal }): Promise<string | undefined>;
  /** Stops reading from the keeper until resumeReading() (backpressure). */
  pause(): void;
  resumeReading(): void;
  /**
   * Runs the EXIT trap, ends all processes of the sandbox, then the keeper. Resolves when the keeper is gone; rejects
   * at the deadline.
   */
  end(options: { terminationTimeoutMs: number }): Promise<void>;
  /** Leaves the shell alive for the next owner. */
  disconnect(): void;
}
