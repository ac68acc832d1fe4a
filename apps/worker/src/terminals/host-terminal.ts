import { Notifier } from '@shellfleet/concurrency';
import type { KeeperTerminalEnd } from '@shellfleet/keeper';
import { type Fenced, type HostMailbox, readTerminalInput, type TerminalOutputReply } from '@shellfleet/mailbox';
import {
  fromTerminalText,
  isShellfleetError,
  parseOrThrow,
  TERMINAL_BEAT_MS,
  TERMINAL_MESSAGES,
  type TerminalInputMessage,
  type TerminalOutputMessage,
  terminalInputMessageSchema,
  toTerminalText,
  type WireTerminalEnd,
} from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { Logger } from '../log/logger.ts';
import type { ShellTerminal, ShellTerminalStart, ShellTerminals } from '../shell/shell-terminals.ts';
import { TerminalInput } from './terminal-input.ts';
import { TerminalOutput, type TerminalOutputOptions } from './terminal-output.ts';

// One terminal of a session on this host: forwards input from Redis to the keeper, and output from the keeper to Redis.
// TERMINAL-1. Input reaches the terminal once and in order, whichever process dies: messages stay in Redis until the
//             keeper reports them as taken, and the keeper ignores offsets that it has taken.
// TERMINAL-2. Output is acknowledged to the keeper only after Redis has stored it. A user who does not read it stops it
//             (backpressure).
// TERMINAL-3. A terminal without a user is hung up. Its end is its last message.

const MESSAGES_A_READ = 32;

export interface HostTerminalDeps {
  mailbox: Pick<HostMailbox, 'owner' | 'appendTerminalOutput'>;
  sealer: Sealer;
  /** Aborts when this host must not write to the session any more. */
  signal: AbortSignal;
  logger: Logger;
  output: Pick<TerminalOutputOptions, 'createStage' | 'secrets'>;
}

/** How much of the terminal's output Redis had when this host adopted it. */
export interface TerminalProgress {
  shown: number;
  rawTo: number;
}

export type TerminalOpening =
  | { type: 'open' | 'ended' }
  | { type: 'refused'; reason: 'no-terminal' | 'too-many'; problem: string };

export class HostTerminal {
  readonly opened: Promise<TerminalOpening>;
  /** Resolves when the terminal has ended and its messages are stored. */
  readonly done: Promise<void>;
  readonly #id: string;
  readonly #deps: HostTerminalDeps;
  readonly #input = new TerminalInput();
  readonly #output: TerminalOutput;
  readonly #opening = Promise.withResolvers<TerminalOpening>();
  readonly #inputWakeUps = new Notifier();
  readonly #outputWakeUps = new Notifier();
  #start: ShellTerminalStart;
  #terminal: ShellTerminal | undefined;
  #number: number;
  #isFull = false;
  #reportedTaken = 0;
  /** True when the next pass must store the input's position even without output. */
  #storeAlways = false;
  #end: WireTerminalEnd | undefined;
  #over = false;
  readonly #onAbort = () => this.#finish();

  constructor(start: ShellTerminalStart, progress: TerminalProgress, deps: HostTerminalDeps) {
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
    this.done = Promise.all([this.#forwardInput(), this.#forwardOutput()]).then(() => {});
    deps.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** How the terminal ended. Undefined while it is open, and when it was left to another host. */
  get ending(): WireTerminalEnd | undefined {
    return this.#end;
  }

  connect(terminals: ShellTerminals): void {
    if (this.#over || this.#end !== undefined) return;
    const handlers = {
      onOutput: (_offset: number, bytes: Uint8Array, typed: number) => {
        this.#start = { ...this.#start, resumeOnly: true };
        this.#opening.resolve({ type: 'open' });
        this.#noteTyped(typed);
        if (bytes.length > 0 && this.#end === undefined) this.#output.push(Buffer.from(bytes));
      },
      onEnd: (end: KeeperTerminalEnd) => {
        if (end.reason === 'no-terminal' || end.reason === 'too-many')
          this.#opening.resolve({ type: 'refused', reason: end.reason, problem: end.problem });
        this.end(toTerminalEnd(end));
        // The keeper keeps an ended terminal until it is closed.
        if (this.#over) this.#terminal?.close();
      },
    };
    this.#terminal = terminals.open({ ...this.#start, from: this.#output.restart() }, handlers);
    this.#input.restart();
    this.#inputWakeUps.notify();
  }

  /** Forwards new input and output after a message from the user. */
  wakeUp(): void {
    this.#inputWakeUps.notify();
    if (this.#isFull) this.#outputWakeUps.notify();
  }

  end(end: WireTerminalEnd): void {
    if (this.#end !== undefined) return;
    this.#opening.resolve({ type: 'ended' });
    this.#end = end;
    this.#output.end();
    this.#outputWakeUps.notify();
  }

  #noteTyped(typed: number): void {
    if (this.#input.noteTyped(typed)) this.#inputWakeUps.notify();
    // Input without echo (a password) makes room for more input although there is no output to store.
    if (this.#input.taken - this.#reportedTaken < TERMINAL_MESSAGES / 4) return;
    this.#storeAlways = true;
    this.#outputWakeUps.notify();
  }

  async #forwardInput(): Promise<void> {
    while (!this.#over) {
      const notified = await this.#inputWakeUps.wait({ timeoutMs: TERMINAL_BEAT_MS });
      // An empty message shows the keeper that a host is connected, even while Redis is down.
      if (!notified) this.#terminal?.input(0, new Uint8Array(0));
      await this.#readInput().catch((error: unknown) => this.#onUnread(error));
    }
  }

  async #readInput(): Promise<void> {
    const { redis, keys } = this.#deps.mailbox.owner;
    while (this.#terminal !== undefined && this.#end === undefined && this.#input.hasRoom) {
      const entries = await readTerminalInput(redis, keys, this.#id, this.#input.read, MESSAGES_A_READ);
      for (const { number, sealed } of entries) {
        if (!this.#input.hasRoom) return;
        this.#take(number, this.#openInput(number, sealed));
      }
      if (entries.length < MESSAGES_A_READ) return;
    }
  }

  /** Retries Redis errors at the next wake-up. A message that cannot be decrypted ends the terminal. */
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

  async #forwardOutput(): Promise<void> {
    while (!this.#over) {
      const notified = await this.#outputWakeUps.wait({ timeoutMs: TERMINAL_BEAT_MS });
      // An empty store shows whether the user is still there.
      const always = !notified || this.#storeAlways;
      this.#storeAlways = false;
      if (always || !this.#output.isEmpty || this.#end !== undefined)
        await this.#storeAll().catch(() => this.#finish());
    }
  }

  async #storeAll(): Promise<void> {
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

  /** Stores messages. Returns false when the user is gone, or another host owns the session. */
  async #store(messages: readonly string[], rawTo: number): Promise<boolean> {
    for (;;) {
      this.#reportedTaken = this.#input.taken;
      const showing = { terminal: this.#id, taken: this.#reportedTaken, number: this.#number, rawTo, messages };
      const answer = await this.#deps.mailbox.appendTerminalOutput(showing);
      if (isStored(answer, this.#number + messages.length)) return true;
      this.#isFull = answer.type === 'full' && !this.#over;
      if (this.#isFull) {
        await this.#outputWakeUps.wait({ timeoutMs: TERMINAL_BEAT_MS });
        continue;
      }
      this.#terminal?.close();
      this.#finish();
      return false;
    }
  }

  #finish(): void {
    this.#over = true;
    this.#deps.signal.removeEventListener('abort', this.#onAbort);
    this.#opening.resolve({ type: 'ended' });
    this.#inputWakeUps.notify();
    this.#outputWakeUps.notify();
  }

  #seal(message: TerminalOutputMessage, number: number): string {
    return this.#deps.sealer.seal(JSON.stringify(message), this.#place(number, 'terminal-output'));
  }

  #openInput(number: number, sealed: string): TerminalInputMessage {
    const plain = this.#deps.sealer.open(sealed, this.#place(number, 'terminal-input'));
    return parseOrThrow(terminalInputMessageSchema, JSON.parse(plain), 'INTERNAL', 'What was typed at a terminal');
  }

  #place(number: number, kind: 'terminal-input' | 'terminal-output') {
    return sealPlace(kind, this.#deps.mailbox.owner.keys, { terminal: this.#id, number });
  }
}

function toTerminalEnd({ reason, exitCode, signal }: KeeperTerminalEnd): WireTerminalEnd {
  const known = reason === 'exited' || reason === 'signalled' || reason === 'hung-up';
  return { reason: known ? reason : 'lost', exitCode, signal: signal === 0 ? null : signal };
}

/** Tells whether the messages are stored, by this call or by an earlier call whose reply was lost. */
function isStored(answer: TerminalOutputReply | Fenced, next: number): boolean {
  return answer.type === 'stored' || (answer.type === 'misplaced' && answer.next === next);
}
