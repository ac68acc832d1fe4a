import type {
  BackgroundProcess,
  EntryEnd,
  EntryHandlers,
  RefusalReason,
  Shell,
  ShellEnd,
  ShellEvents,
  ShellHello,
  ShellStart,
} from '../src/shell/shell.ts';
import type { ShellFiles } from '../src/shell/shell-files.ts';
import type { ShellTerminals } from '../src/shell/shell-terminals.ts';

/** What a command prints that its sandbox denies something. */
export const DENIED = 'touch: /etc/a: Read-only file system\n';

/**
 * A keeper with a shell in memory. It follows the rules of shell.ts over any number of connections: an id begins once,
 * output stays until it is acknowledged, and events arrive after the call that caused them. A script that begins with
 * `hold` runs until the test ends or cancels it; one that begins with `denied` prints a denial by a sandbox (`behind
 * much`: after 4,000 lines) and fails; every other entry ends at once with exit code 0.
 */
export class FakeKeeper {
  readonly begun: string[] = [];
  /** Entries that a stop arrived for, in order. */
  readonly stops: string[] = [];
  shellNumber = 1;
  /** Drops the next START, as when the connection breaks while it is on its way. */
  losesNextStart = false;
  /** A stop is received and has no effect. */
  ignoresStops = false;
  #connection: FakeConnection | undefined;
  #running: { entryId: string; output: string } | undefined;
  #ended: { entryId: string; output: string; end: ShellEnd } | undefined;

  /** A new connection; the one before breaks. */
  connect(): Shell {
    this.breakConnection();
    this.#connection = new FakeConnection(this, this.#hello());
    return this.#connection;
  }

  breakConnection(): void {
    this.#connection?.disconnected();
    this.#connection = undefined;
  }

  /** The running entry prints to its stdout. */
  print(text: string): void {
    const entry = this.#running;
    if (entry === undefined) throw new Error('nothing runs');
    const offset = entry.output.length;
    entry.output += text;
    this.#connection?.output(entry.entryId, offset, text);
  }

  /** The running entry ends. */
  end(how: Partial<ShellEnd> = {}): void {
    const entry = this.#running;
    if (entry === undefined) throw new Error('nothing runs');
    this.#running = undefined;
    const end: ShellEnd = {
      reason: 'exited',
      exitCode: 0,
      signal: null,
      shell: { state: 'kept', shellNumber: this.shellNumber },
      totals: { stdout: entry.output.length, stderr: 0 },
      runMs: 1,
      ...how,
    };
    this.#ended = { ...entry, end };
    this.#connection?.finish(entry.entryId, { type: 'ended', end });
  }

  /** An entry begins, on a connection that the test does not show. */
  begin(entryId: string): void {
    this.begun.push(entryId);
    this.#running = { entryId, output: '' };
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
    const script = entry.type === 'command' ? String(entry.script) : '';
    if (script.startsWith('denied')) {
      if (script.includes('behind much')) this.print('a line before it\n'.repeat(4_000));
      this.print(DENIED);
      this.end({ exitCode: 1 });
    } else if (!script.startsWith('hold')) this.end();
  }

  resume(from: FakeConnection, entryId: string, stdout: number): void {
    const known = [this.#running, this.#ended].find((entry) => entry?.entryId === entryId);
    if (known === undefined) {
      from.finish(entryId, { type: 'refused', reason: 'begun-before' });
      return;
    }
    const rest = known.output.slice(stdout);
    if (rest !== '') from.output(entryId, stdout, rest);
    if (this.#ended?.entryId === entryId) from.finish(entryId, { type: 'ended', end: this.#ended.end });
  }

  stop(entryId: string): void {
    this.stops.push(entryId);
    if (this.#running?.entryId !== entryId || this.ignoresStops) return;
    this.end({ reason: 'cancelled', exitCode: null });
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
      received: { stdout: entry?.output.length ?? 0, stderr: 0 },
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
    call: () => Promise.resolve({ type: 'done', stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }),
  };
  connected = true;
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
    const { stdout } = handlers.received();
    return this.#follow(entryId, handlers, 'resume', () => this.#keeper.resume(this, entryId, stdout));
  }

  output(entryId: string, offset: number, text: string): void {
    if (this.#current?.entryId === entryId) this.#current.handlers.onOutput('stdout', offset, Buffer.from(text));
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
  input(): void {}
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
