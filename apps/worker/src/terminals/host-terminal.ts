import { Notifier } from '@shellfleet/concurrency';
import type { TerminalEnd as KeeperEnd } from '@shellfleet/keeper';
import {
  appendTerminalOutput,
  type Fenced,
  type Owner,
  readTerminalInput,
  retryWhileRedisIsDown,
  type Sealer,
  sealPlace,
  type TerminalOutputAnswer,
} from '@shellfleet/mailbox';
import {
  fromTerminalText,
  isShellfleetError,
  parseOrThrow,
  TERMINAL_BEAT_MS,
  TERMINAL_MESSAGES,
  type TerminalEnd,
  type TerminalInputMessage,
  type TerminalOutputMessage,
  terminalInputMessageSchema,
  toTerminalText,
} from '@shellfleet/protocol';
import type { Logger } from 'pino';
import type { ShellTerminal, ShellTerminals, TerminalStart } from '../shell/shell-terminals.ts';
import { TerminalInput } from './terminal-input.ts';
import { TerminalOutput, type TerminalOutputOptions } from './terminal-output.ts';

// One terminal of a session on this host: between its user, who is somewhere in Redis, and the keeper.
//
// HT1. What its user types reaches the terminal once and in order, whatever dies in between: messages stay in Redis until the
//      keeper says that they were typed, and the keeper knows what it has had.
// HT2. What it shows is acknowledged to the keeper only when Redis has stored it. A user who does not read makes it wait.
// HT3. Without a user it is hung up. Its end is the last thing that it shows.

const MESSAGES_A_READ = 32;

export interface HostTerminalDeps {
  owner: Owner;
  sealer: Sealer;
  /** This host may write no more. */
  signal: AbortSignal;
  logger: Logger;
  output: Pick<TerminalOutputOptions, 'createStage' | 'secrets'>;
  onFenced(): void;
}

/** What Redis had of it when this host began. */
export interface TerminalProgress {
  shown: number;
  rawTo: number;
}

export type Opened =
  | { type: 'open' | 'ended' }
  | { type: 'refused'; reason: 'no-terminal' | 'too-many'; problem: string };

export class HostTerminal {
  readonly opened: Promise<Opened>;
  /** It has ended, and everything that could be said of it has been. */
  readonly done: Promise<void>;
  readonly #id: string;
  readonly #deps: HostTerminalDeps;
  readonly #input = new TerminalInput();
  readonly #output: TerminalOutput;
  readonly #opening = Promise.withResolvers<Opened>();
  readonly #inputWakeUps = new Notifier();
  readonly #outputWakeUps = new Notifier();
  #start: TerminalStart;
  #terminal: ShellTerminal | undefined;
  #number: number;
  #isFull = false;
  #toldTaken = 0;
  /** The next look stores the position of the input even when there is no output. */
  #storeAlways = false;
  #end: TerminalEnd | undefined;
  #over = false;

  constructor(start: TerminalStart, progress: TerminalProgress, deps: HostTerminalDeps) {
    this.#id = start.id;
    this.#start = start;
    this.#deps = deps;
    this.#number = progress.shown + 1;
    this.#output = new TerminalOutput(progress.rawTo, {
      ...deps.output,
      onReady: () => this.#outputWakeUps.notify(),
      onBlocked: () => this.end({ reason: 'blocked', exitCode: null, signal: null }),
    });
    this.opened = this.#opening.promise;
    this.done = Promise.all([this.#hear(), this.#show()]).then(() => {});
    deps.signal.addEventListener('abort', () => this.#finish(), { once: true });
  }

  /** There is a connection to the keeper, the first one or another. */
  connect(terminals: ShellTerminals): void {
    if (this.#over || this.#end !== undefined) return;
    const handlers = {
      onOutput: (_offset: number, bytes: Uint8Array, typed: number) => {
        this.#start = { ...this.#start, resumeOnly: true };
        this.#opening.resolve({ type: 'open' });
        this.#noteTyped(typed);
        if (bytes.length > 0 && this.#end === undefined) this.#output.push(Buffer.from(bytes));
      },
      onEnd: (end: KeeperEnd) => {
        if (end.reason === 'no-terminal' || end.reason === 'too-many')
          this.#opening.resolve({ type: 'refused', reason: end.reason, problem: end.problem });
        this.end(toTerminalEnd(end));
        // Nobody else would let the keeper forget it.
        if (this.#over) this.#terminal?.close();
      },
    };
    this.#terminal = terminals.open({ ...this.#start, from: this.#output.restart() }, handlers);
    this.#input.restart();
    this.#inputWakeUps.notify();
  }

  /** Its user has typed or read something. */
  wakeUp(): void {
    this.#inputWakeUps.notify();
    if (this.#isFull) this.#outputWakeUps.notify();
  }

  end(end: TerminalEnd): void {
    if (this.#end !== undefined) return;
    this.#opening.resolve({ type: 'ended' });
    this.#end = end;
    this.#output.end();
    this.#outputWakeUps.notify();
  }

  #noteTyped(typed: number): void {
    if (this.#input.noteTyped(typed)) this.#inputWakeUps.notify();
    // What is typed and not shown, a password, must make room for more.
    if (this.#input.taken - this.#toldTaken < TERMINAL_MESSAGES / 4) return;
    this.#storeAlways = true;
    this.#outputWakeUps.notify();
  }

  /** From Redis to the keeper. */
  async #hear(): Promise<void> {
    while (!this.#over) {
      const notified = await this.#inputWakeUps.wait({ timeoutMs: TERMINAL_BEAT_MS });
      // The keeper sees a host that is connected, also while Redis is down.
      if (!notified) this.#terminal?.input(0, new Uint8Array(0));
      await this.#readTyped().catch((error: unknown) => this.#onUnread(error));
    }
  }

  async #readTyped(): Promise<void> {
    const { redis, keys } = this.#deps.owner;
    while (this.#terminal !== undefined && this.#end === undefined && this.#input.hasRoom) {
      const entries = await readTerminalInput(redis, keys, this.#id, this.#input.read, MESSAGES_A_READ);
      for (const { number, sealed } of entries) {
        if (!this.#input.hasRoom) return;
        this.#take(number, this.#openTyped(number, sealed));
      }
      if (entries.length < MESSAGES_A_READ) return;
    }
  }

  /** Redis is asked again; what does not open will never do. */
  #onUnread(err: unknown): void {
    if (!isShellfleetError(err) || err.code === 'QUEUE_UNAVAILABLE') return;
    this.#deps.logger.warn({ err }, 'terminal.unreadable');
    this.#terminal?.close();
  }

  #take(number: number, typed: TerminalInputMessage): void {
    const terminal = this.#terminal;
    switch (typed.type) {
      case 'input': {
        const bytes = fromTerminalText(typed.data);
        this.#input.sent(number, typed.from + bytes.length);
        terminal?.input(typed.from, bytes);
        break;
      }
      case 'resize': {
        const { rows, columns } = typed;
        this.#start = { ...this.#start, rows, columns };
        this.#input.sent(number, 0);
        terminal?.resize({ rows, columns });
        break;
      }
      case 'close':
        this.#input.sent(number, 0);
        terminal?.close();
        break;
    }
  }

  /** From the keeper to Redis. */
  async #show(): Promise<void> {
    while (!this.#over) {
      const notified = await this.#outputWakeUps.wait({ timeoutMs: TERMINAL_BEAT_MS });
      // Also without output, to learn whether the user is still there.
      const always = !notified || this.#storeAlways;
      this.#storeAlways = false;
      if (always || !this.#output.isEmpty || this.#end !== undefined) await this.#showAll().catch(() => this.#finish());
    }
  }

  async #showAll(): Promise<void> {
    do {
      const ending = this.#end;
      const { pieces, rawTo } = this.#output.take();
      const shown: TerminalOutputMessage[] = pieces.map((data) => ({ type: 'output', data: toTerminalText(data) }));
      if (ending !== undefined) shown.push({ type: 'end', ...ending });
      const messages = shown.map((message, index) => this.#seal(message, this.#number + index));
      if (!(await this.#store(messages, rawTo))) return;
      this.#number += messages.length;
      if (messages.length > 0) this.#terminal?.ack(rawTo);
      if (ending !== undefined) {
        this.#terminal?.close();
        this.#finish();
      }
    } while (!this.#over && (!this.#output.isEmpty || this.#end !== undefined));
  }

  /** False when nobody will ever read it. */
  async #store(messages: readonly string[], rawTo: number): Promise<boolean> {
    for (;;) {
      this.#toldTaken = this.#input.taken;
      const showing = { terminal: this.#id, taken: this.#toldTaken, number: this.#number, rawTo, messages };
      const answer = await retryWhileRedisIsDown(
        () => appendTerminalOutput(this.#deps.owner, showing),
        this.#deps.signal,
      );
      if (isStored(answer, this.#number + messages.length)) return true;
      this.#isFull = answer.type === 'full' && !this.#over;
      if (this.#isFull) {
        await this.#outputWakeUps.wait({ timeoutMs: TERMINAL_BEAT_MS });
        continue;
      }
      if (answer.type === 'fenced') this.#deps.onFenced();
      // HT3
      this.#terminal?.close();
      this.#finish();
      return false;
    }
  }

  #finish(): void {
    this.#over = true;
    this.#opening.resolve({ type: 'ended' });
    this.#inputWakeUps.notify();
    this.#outputWakeUps.notify();
  }

  #seal(message: TerminalOutputMessage, number: number): string {
    return this.#deps.sealer.seal(JSON.stringify(message), this.#place(number, 'terminal-output'));
  }

  #openTyped(number: number, sealed: string): TerminalInputMessage {
    const plain = this.#deps.sealer.open(sealed, this.#place(number, 'terminal-input'));
    return parseOrThrow(terminalInputMessageSchema, JSON.parse(plain), 'INTERNAL', 'What was typed at a terminal');
  }

  #place(number: number, kind: 'terminal-input' | 'terminal-output') {
    return sealPlace(kind, this.#deps.owner.keys, { terminal: this.#id, number });
  }
}

function toTerminalEnd({ reason, exitCode, signal }: KeeperEnd): TerminalEnd {
  const known = reason === 'exited' || reason === 'signalled' || reason === 'hung-up';
  return { reason: known ? reason : 'lost', exitCode, signal: signal === 0 ? null : signal };
}

/** A call whose reply was lost is made again, and finds what it stored. */
function isStored(answer: TerminalOutputAnswer | Fenced, next: number): boolean {
  return answer.type === 'stored' || (answer.type === 'misplaced' && answer.next === next);
}
