import { withResolvers } from '@shellfleet/concurrency';
import type { StreamName } from '@shellfleet/protocol';
import type {
  BackgroundProcess,
  DisconnectReason,
  RefusalReason,
  Shell,
  ShellEnd,
  ShellHello,
  ShellStart,
  StreamOffsets,
} from './shell.ts';
import type { ShellFiles } from './shell-files.ts';
import type { ShellTerminals } from './shell-terminals.ts';

/** How an entry ended on one connection. `gone`: the connection broke, and the fate of the entry is not known here. */
export type EntryEnd =
  | { type: 'ended'; end: ShellEnd }
  | { type: 'refused'; reason: RefusalReason }
  | { type: 'gone'; reason: DisconnectReason };

/** Receives what one entry does while it runs. */
export interface EntryHandlers {
  /** `bytes` are freed when it returns. */
  onOutput(stream: StreamName, offset: number, bytes: Uint8Array): void;
  /** The pipe of an open stdin has taken the bytes before `offset`. `readerClosed`: no process reads it any more. */
  onInputTaken?: ((offset: number, readerClosed: boolean) => void) | undefined;
}

/** Receives what happens on a connection beside the entry that runs. */
export interface LiveShellEvents {
  /** A fresh shell replaced one that died between two entries. */
  onShell(shell: { shellNumber: number; reason: string }): void;
  /** Output of a background process that outlived its entry; empty bytes end a stream. */
  onLate(entryId: string, stream: StreamName, offset: number, bytes: Uint8Array): void;
  onGone(reason: DisconnectReason): void;
}

interface CurrentEntry extends EntryHandlers {
  entryId: string;
  end(end: EntryEnd): void;
}

/** One connection to a shell. At most one entry at a time: start() and resume() resolve with how the entry ended. */
export class LiveShell {
  readonly #shell: Shell;
  #current: CurrentEntry | undefined;
  #gone: DisconnectReason | undefined;

  constructor(shell: Shell, events: LiveShellEvents) {
    this.#shell = shell;
    shell.on({
      onOutput: (entryId, stream, offset, bytes) => {
        if (this.#current?.entryId === entryId) this.#current.onOutput(stream, offset, bytes);
      },
      onLate: (entryId, stream, offset, bytes) => events.onLate(entryId, stream, offset, bytes),
      onEnd: (entryId, end) => this.#end(entryId, { type: 'ended', end }),
      onInputTaken: (entryId, offset, readerClosed) => {
        if (this.#current?.entryId === entryId) this.#current.onInputTaken?.(offset, readerClosed);
      },
      onRefused: (entryId, reason) => this.#end(entryId, { type: 'refused', reason }),
      onShell: (fresh) => events.onShell(fresh),
      onDisconnect: (reason) => {
        this.#gone = reason;
        if (this.#current !== undefined) this.#end(this.#current.entryId, { type: 'gone', reason });
        events.onGone(reason);
      },
    });
  }

  get connected(): boolean {
    return this.#gone === undefined;
  }

  /** The keeper's hello when this connection was made. */
  get hello(): ShellHello {
    return this.#shell.hello;
  }

  get terminals(): ShellTerminals {
    return this.#shell.terminals;
  }

  get files(): ShellFiles {
    return this.#shell.files;
  }

  start(entry: ShellStart, handlers: EntryHandlers): Promise<EntryEnd> {
    return this.#begin(entry.entryId, handlers, () => this.#shell.start(entry));
  }

  /** Follows an entry that runs, or that ended last. `offsets`: where its output goes on. */
  resume(entryId: string, offsets: StreamOffsets, handlers: EntryHandlers): Promise<EntryEnd> {
    return this.#begin(entryId, handlers, () => this.#shell.resume(entryId, offsets));
  }

  ack(entryId: string, stream: StreamName, offset: number): void {
    this.#shell.ack(entryId, stream, offset);
  }

  stop(entryId: string, options: { killGraceMs: number }): void {
    this.#shell.stop(entryId, options);
  }

  input(entryId: string, offset: number, bytes: Uint8Array, end: boolean): void {
    this.#shell.input(entryId, offset, bytes, end);
  }

  storage(state: 'away' | 'back'): void {
    this.#shell.storage(state);
  }

  background(options: { signal: AbortSignal }): Promise<BackgroundProcess[]> {
    return this.#shell.background(options);
  }

  directory(options: { path?: string; signal: AbortSignal }): Promise<string | undefined> {
    return this.#shell.directory(options);
  }

  pause(): void {
    this.#shell.pause();
  }

  resumeReading(): void {
    this.#shell.resumeReading();
  }

  end(options: { terminationTimeoutMs: number }): Promise<void> {
    return this.#shell.end(options);
  }

  disconnect(): void {
    this.#shell.disconnect();
  }

  #begin(entryId: string, { onOutput, onInputTaken }: EntryHandlers, act: () => void): Promise<EntryEnd> {
    if (this.#gone !== undefined) return Promise.resolve({ type: 'gone', reason: this.#gone });
    const ended = withResolvers<EntryEnd>();
    this.#current = { entryId, onOutput, onInputTaken, end: ended.resolve };
    act();
    return ended.promise;
  }

  #end(entryId: string, end: EntryEnd): void {
    if (this.#current?.entryId !== entryId) return;
    const ending = this.#current;
    this.#current = undefined;
    ending.end(end);
  }
}
