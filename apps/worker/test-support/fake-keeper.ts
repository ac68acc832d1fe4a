import { STREAM_NAMES, type StreamName } from '@shellfleet/protocol';
import type {
  BackgroundProcess,
  CommandStart,
  EntryEnd,
  EntryHandlers,
  RefusalReason,
  Shell,
  ShellEnd,
  ShellEvents,
  ShellHello,
  ShellStart,
  StreamOffsets,
} from '../src/shell/shell.ts';
import type { ShellFiles } from '../src/shell/shell-files.ts';
import type { ShellTerminals } from '../src/shell/shell-terminals.ts';
import { FakeFiles } from './fake-files.ts';

/** Output of a command that its sandbox denies something. */
export const DENIED = 'touch: /etc/a: Read-only file system\n';

/** Runs a script in place of the shell in memory. Reports with print(), inputTaken() and end() of the keeper. */
export type RunScript = (start: CommandStart, keeper: FakeKeeper) => RunningScript;

interface RunningScript {
  /** Called when the script is cancelled or its sandbox removed. */
  stop(): void;
  input(bytes: Uint8Array, end: boolean): void;
}

interface FakeEntry {
  entryId: string;
  output: Record<StreamName, Buffer[]>;
  printed: StreamOffsets;
  script?: RunningScript;
}

/**
 * A keeper with a shell in memory that follows shell.ts over any number of connections. `hold …` runs until it is
 * cancelled, `denied` fails like in a sandbox (`behind much`: after 4,000 lines), all else succeeds at once. A
 * RunScript runs all scripts but the first of each shell.
 */
export class FakeKeeper {
  readonly begun: string[] = [];
  /** Variables of the last command. */
  env: Record<string, string> | undefined;
  /** Ids of stopped entries, in order. */
  readonly stops: string[] = [];
  shellNumber = 1;
  /** Drops the next START, as when the connection breaks while it is on its way. */
  losesNextStart = false;
  /** Receives stops without any effect. */
  ignoresStops = false;
  readonly files = new FakeFiles();
  readonly #runScript: RunScript | undefined;
  #preparedShell = 0;
  #connection: FakeConnection | undefined;
  #running: FakeEntry | undefined;
  #ended: (FakeEntry & { end: ShellEnd }) | undefined;

  constructor(runScript?: RunScript) {
    this.#runScript = runScript;
  }

  /** Connects again, which breaks the previous connection. */
  connect(): Shell {
    this.breakConnection();
    this.#connection = new FakeConnection(this, this.#hello());
    return this.#connection;
  }

  breakConnection(): void {
    this.#connection?.disconnected();
    this.#connection = undefined;
  }

  print(data: string | Buffer, stream: StreamName = 'stdout'): void {
    const { entryId, output, printed } = this.#current();
    const bytes = Buffer.from(data);
    const offset = printed[stream];
    output[stream].push(bytes);
    printed[stream] += bytes.byteLength;
    this.#connection?.handlersOf(entryId)?.onOutput(stream, offset, bytes);
  }

  /** Reports that the open stdin has taken the bytes before `offset`, and whether a process still reads it. */
  inputTaken(offset: number, readerClosed: boolean): void {
    if (this.#running !== undefined)
      this.#connection?.handlersOf(this.#running.entryId)?.onInputTaken?.(offset, readerClosed);
  }

  end(how: Partial<ShellEnd> = {}): void {
    const entry = this.#current();
    this.#running = undefined;
    const end: ShellEnd = {
      reason: 'exited',
      exitCode: 0,
      signal: null,
      shell: { state: 'kept', shellNumber: this.shellNumber },
      totals: entry.printed,
      runMs: 1,
      way: 'loop',
      ...how,
    };
    this.#ended = { ...entry, end };
    this.#connection?.finish(entry.entryId, { type: 'ended', end });
  }

  /** Begins an entry over a connection that is not part of the test. */
  begin(entryId: string): void {
    this.begun.push(entryId);
    this.#running = { entryId, output: { stdout: [], stderr: [] }, printed: { stdout: 0, stderr: 0 } };
  }

  /** Ends what runs, because the sandbox is gone. */
  kill(): void {
    this.breakConnection();
    this.#running?.script?.stop();
  }

  start(from: FakeConnection, entry: ShellStart): void {
    if (this.losesNextStart) {
      this.losesNextStart = false;
      return;
    }
    const refusal = this.#refusal(entry);
    if (refusal !== undefined) {
      if (refusal === 'other-shell') from.events?.onShell({ shellNumber: this.shellNumber, reason: 'the shell ended' });
      from.finish(entry.entryId, { type: 'refused', reason: refusal });
      return;
    }
    this.begin(entry.entryId);
    if (entry.type === 'command') this.env = entry.env;
    const isPrepared = this.#preparedShell === this.shellNumber;
    this.#preparedShell = this.shellNumber;
    if (entry.type === 'restart')
      this.end({ shell: { state: 'lost', reason: 'restarted', shellNumber: ++this.shellNumber } });
    else if (this.#runScript !== undefined && isPrepared) this.#current().script = this.#runScript(entry, this);
    else this.#runInMemory(String(entry.script));
  }

  #runInMemory(script: string): void {
    if (script.startsWith('denied')) {
      if (script.includes('behind much')) this.print('a line before it\n'.repeat(4_000));
      this.print(DENIED);
      this.end({ exitCode: 1 });
    } else if (!script.startsWith('hold')) this.end();
  }

  resume(from: FakeConnection, entryId: string, offsets: StreamOffsets): void {
    const known = [this.#running, this.#ended].find((entry) => entry?.entryId === entryId);
    if (known === undefined) {
      from.finish(entryId, { type: 'refused', reason: 'begun-before' });
      return;
    }
    for (const stream of STREAM_NAMES) {
      const rest = Buffer.concat(known.output[stream]).subarray(offsets[stream]);
      if (rest.byteLength > 0) from.handlersOf(entryId)?.onOutput(stream, offsets[stream], rest);
    }
    if (this.#ended?.entryId === entryId) from.finish(entryId, { type: 'ended', end: this.#ended.end });
  }

  input(entryId: string, bytes: Uint8Array, end: boolean): void {
    if (this.#running?.entryId === entryId) this.#running.script?.input(bytes, end);
  }

  stop(entryId: string): void {
    this.stops.push(entryId);
    if (this.#running?.entryId !== entryId || this.ignoresStops) return;
    if (this.#running.script === undefined) this.end({ reason: 'cancelled', exitCode: null });
    else this.#running.script.stop();
  }

  #current(): FakeEntry {
    if (this.#running === undefined) throw new Error('nothing runs');
    return this.#running;
  }

  #refusal(entry: ShellStart): RefusalReason | undefined {
    const { entryId } = entry;
    if (this.#running?.entryId === entryId) return 'running';
    if (this.#ended?.entryId === entryId) return 'ended';
    if (this.begun.includes(entryId)) return 'begun-before';
    if (this.#running !== undefined) return 'busy';
    const named = entry.type === 'command' ? (entry.shellNumber ?? 0) : 0;
    return named === 0 || named === this.shellNumber ? undefined : 'other-shell';
  }

  #hello(): ShellHello {
    const entry = this.#running ?? this.#ended;
    return {
      state: this.#running !== undefined ? 'running' : this.#ended !== undefined ? 'ended' : 'idle',
      entryId: entry?.entryId ?? null,
      received: entry?.printed ?? { stdout: 0, stderr: 0 },
      acked: { stdout: 0, stderr: 0 },
      shellNumber: this.shellNumber,
      begunCount: this.begun.length,
    };
  }
}

class FakeConnection implements Shell {
  readonly hello: ShellHello;
  readonly terminals: ShellTerminals = {
    open() {
      throw new Error('this keeper has no terminals');
    },
  };
  readonly files: ShellFiles = {
    call: async (_id, operation) => this.#keeper.files.run(operation),
    hasBegun: async () => false,
    stop() {},
  };
  connected = true;
  readonly way = undefined;
  events: ShellEvents | undefined;
  #current: { entryId: string; handlers: EntryHandlers; end(end: EntryEnd): void } | undefined;
  readonly #keeper: FakeKeeper;

  constructor(keeper: FakeKeeper, hello: ShellHello) {
    this.#keeper = keeper;
    this.hello = hello;
  }

  on(events: ShellEvents): void {
    this.events = events;
  }

  start(entry: ShellStart, handlers: EntryHandlers): Promise<EntryEnd> {
    return this.#follow(entry.entryId, handlers, 'start', () => this.#keeper.start(this, entry));
  }

  resume(entryId: string, handlers: EntryHandlers): Promise<EntryEnd> {
    const offsets = handlers.received();
    return this.#follow(entryId, handlers, 'resume', () => this.#keeper.resume(this, entryId, offsets));
  }

  handlersOf(entryId: string): EntryHandlers | undefined {
    return this.#current?.entryId === entryId ? this.#current.handlers : undefined;
  }

  finish(entryId: string, end: EntryEnd): void {
    const current = this.#current;
    if (current?.entryId !== entryId) return;
    this.#current = undefined;
    current.end(end);
  }

  stop(entryId: string): void {
    this.#send(() => this.#keeper.stop(entryId));
  }

  ack(): void {}

  input(entryId: string, _offset: number, bytes: Uint8Array, end: boolean): void {
    this.#send(() => this.#keeper.input(entryId, bytes, end));
  }

  storage(): void {}
  pause(): void {}
  resumeReading(): void {}

  async background(): Promise<BackgroundProcess[]> {
    return [];
  }

  async directory({ path = '/workspace' }: { path?: string } = {}): Promise<string | undefined> {
    return path;
  }

  async end(): Promise<void> {
    this.disconnect();
  }

  disconnect(): void {
    this.disconnected();
  }

  disconnected(): void {
    if (!this.connected) return;
    this.connected = false;
    if (this.#current !== undefined) this.finish(this.#current.entryId, { type: 'gone', reason: 'closed' });
    const { events } = this;
    this.events = undefined;
    events?.onGone('closed');
  }

  async #follow(
    entryId: string,
    handlers: EntryHandlers,
    how: 'start' | 'resume',
    frame: () => void,
  ): Promise<EntryEnd> {
    if (!this.connected) return { type: 'gone', reason: 'closed' };
    const { promise, resolve } = Promise.withResolvers<EntryEnd>();
    this.#current = { entryId, handlers, end: resolve };
    this.#send(frame);
    handlers.onFollowed?.(this, how);
    return promise;
  }

  #send(frame: () => void): void {
    queueMicrotask(() => {
      if (this.connected) frame();
    });
  }
}
