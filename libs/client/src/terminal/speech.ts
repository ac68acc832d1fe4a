import {
  appendTerminalInput,
  type Sealer,
  sealPlace,
  type TerminalInputAnswer,
  toQueueError,
} from '@shellfleet/mailbox';
import {
  isShellfleetError,
  ShellfleetError,
  TERMINAL_MESSAGE_BYTES,
  TERMINAL_TTL_MS,
  type TerminalInputMessage,
  type TerminalSize,
  toTerminalText,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { OpenSession } from '../submit/open-session.ts';

/** A call may carry as many messages. */
const MESSAGES_A_CALL = 16;
const AGAIN_MS = 100;

export interface SpeechDeps {
  redis: Redis;
  sealer: Sealer;
  session: OpenSession;
  terminal: string;
  /** the last shown message that was read */
  read(): number;
  /** What the mailbox answered, each time. */
  onAnswer(answer: TerminalInputAnswer): void;
  onFailed(error: unknown): void;
}

/** What a terminal's user says: one call at a time, so each message goes in once and in order, and keys typed meanwhile travel together. */
export class Speech {
  readonly #deps: SpeechDeps;
  #bytes: Buffer[] = [];
  #byteCount = 0;
  #size: TerminalSize | undefined;
  #closing = false;
  #typedBytes = 0;
  #number = 1;
  #speaking = false;
  #again = false;
  #over = false;
  #saidAt = Date.now();
  #heard = Promise.withResolvers<void>();

  constructor(deps: SpeechDeps) {
    this.#deps = deps;
  }

  /** Resolves when the mailbox has them. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#over || bytes.byteLength === 0) return;
    this.#bytes.push(Buffer.from(bytes));
    this.#byteCount += bytes.byteLength;
    const upTo = this.#typedBytes + this.#byteCount;
    this.speak();
    while (!this.#over && this.#typedBytes < upTo) await this.#heard.promise;
  }

  resize(size: TerminalSize): void {
    this.#size = size;
    this.speak();
  }

  close(): void {
    this.#closing = true;
    this.speak();
  }

  /** Says what there is to say; with nothing, only that somebody is there and what was read. */
  speak(): void {
    this.#again = true;
    if (!this.#speaking) void this.#speak();
  }

  end(): void {
    this.#over = true;
    this.#tellHeard();
  }

  async #speak(): Promise<void> {
    this.#speaking = true;
    while (this.#again && !this.#over) {
      this.#again = false;
      const { messages, bytes } = this.#compose();
      try {
        await this.#say(messages.map((message, index) => this.#seal(message, this.#number + index)));
      } catch (error) {
        this.#deps.onFailed(error);
        break;
      }
      this.#number += messages.length;
      this.#typedBytes += bytes;
      this.#tellHeard();
    }
    this.#speaking = false;
  }

  #compose(): { messages: TerminalInputMessage[]; bytes: number } {
    const messages: TerminalInputMessage[] = [];
    if (this.#size !== undefined) messages.push({ type: 'resize', ...this.#size });
    this.#size = undefined;
    const all = Buffer.concat(this.#bytes);
    const bytes = Math.min(all.length, MESSAGES_A_CALL * TERMINAL_MESSAGE_BYTES);
    for (let at = 0; at < bytes; at += TERMINAL_MESSAGE_BYTES) {
      const data = toTerminalText(all.subarray(at, Math.min(bytes, at + TERMINAL_MESSAGE_BYTES)));
      messages.push({ type: 'input', from: this.#typedBytes + at, data });
    }
    const rest = all.subarray(bytes);
    this.#bytes = rest.length > 0 ? [rest] : [];
    this.#byteCount = rest.length;
    if (rest.length > 0) this.#again = true;
    else if (this.#closing) messages.push({ type: 'close' });
    if (rest.length === 0) this.#closing = false;
    return { messages, bytes };
  }

  /** Until the mailbox has them, or its terminal is no more. */
  async #say(messages: readonly string[]): Promise<void> {
    const { redis, session, terminal, read, onAnswer } = this.#deps;
    while (!this.#over) {
      const place = { terminal, generation: session.generation, begin: false, number: this.#number, read: read() };
      const answer = await appendTerminalInput(redis, session.keys, { ...place, messages }).catch((error: unknown) =>
        this.#orAgain(error),
      );
      if (answer !== undefined) {
        this.#saidAt = Date.now();
        onAnswer(answer);
        if (answer.type === 'stored') return;
        if (answer.type === 'misplaced' && answer.next === this.#number + messages.length) return;
        if (answer.type === 'misplaced')
          throw new ShellfleetError(
            'INTERNAL',
            `Another process types at terminal ${terminal} of session ${session.id}.`,
          );
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** While Redis is away the terminal lives for its time. */
  #orAgain(error: unknown): undefined {
    const away = isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE';
    if (!away || Date.now() - this.#saidAt > TERMINAL_TTL_MS) throw away ? error : toQueueError(error);
  }

  #seal(message: TerminalInputMessage, number: number): string {
    const { sealer, session, terminal } = this.#deps;
    return sealer.seal(JSON.stringify(message), sealPlace('terminal-input', session.keys, { terminal, number }));
  }

  #tellHeard(): void {
    this.#heard.resolve();
    this.#heard = Promise.withResolvers();
  }
}
