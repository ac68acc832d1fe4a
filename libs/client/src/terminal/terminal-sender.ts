import { Notifier } from '@shellfleet/concurrency';
import { appendTerminalInput, type TerminalInputReply } from '@shellfleet/mailbox';
import {
  isShellfleetError,
  ShellfleetError,
  TERMINAL_MESSAGE_BYTES,
  TERMINAL_TTL_MS,
  type TerminalInputMessage,
  type TerminalSize,
  toTerminalText,
} from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { OpenSession } from '../submit/open-session.ts';

const MESSAGES_PER_CALL = 16;
const RETRY_MS = 100;

export interface TerminalSenderDeps {
  redis: Redis;
  sealer: Sealer;
  session: OpenSession;
  terminal: string;
  /** Returns the number of the last output message that was read. */
  read(): number;
  onReply(reply: TerminalInputReply): void;
  onFailed(error: unknown): void;
}

/** Sends a terminal's input, size and end, in one call at a time, so that each message is stored once and in order. */
export class TerminalSender {
  readonly #deps: TerminalSenderDeps;
  #bytes: Buffer[] = [];
  /** Number of bytes that were written. `#typedBytes` is the number of those that the mailbox has stored. */
  #writtenBytes = 0;
  #typedBytes = 0;
  #size: TerminalSize | undefined;
  #closing = false;
  #number = 1;
  #sending = false;
  #again = false;
  #ended = false;
  #answeredAt = performance.now();
  readonly #changed = new Notifier();

  constructor(deps: TerminalSenderDeps) {
    this.#deps = deps;
  }

  /** Resolves when the mailbox has stored the bytes, or the terminal has ended. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#ended || bytes.byteLength === 0) return;
    this.#bytes.push(Buffer.from(bytes));
    this.#writtenBytes += bytes.byteLength;
    const upTo = this.#writtenBytes;
    this.send();
    while (!this.#ended && this.#typedBytes < upTo) await this.#changed.wait();
  }

  resize(size: TerminalSize): void {
    this.#size = size;
    this.send();
  }

  close(): void {
    this.#closing = true;
    this.send();
  }

  /**
   * Sends the pending messages, if any. Each call renews the terminal's lease and reports how far its output was read.
   */
  send(): void {
    this.#again = true;
    if (!this.#sending) void this.#sendAll();
  }

  end(): void {
    this.#ended = true;
    this.#changed.notify();
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    while (this.#again && !this.#ended) {
      this.#again = false;
      const { messages, bytes } = this.#compose();
      try {
        await this.#call(messages.map((message, index) => this.#seal(message, this.#number + index)));
      } catch (error) {
        this.#deps.onFailed(error);
        break;
      }
      this.#number += messages.length;
      this.#typedBytes += bytes;
      this.#changed.notify();
    }
    this.#sending = false;
  }

  #compose(): { messages: TerminalInputMessage[]; bytes: number } {
    const messages: TerminalInputMessage[] = [];
    if (this.#size !== undefined) messages.push({ type: 'resize', ...this.#size });
    this.#size = undefined;
    const all = Buffer.concat(this.#bytes);
    const bytes = Math.min(all.length, MESSAGES_PER_CALL * TERMINAL_MESSAGE_BYTES);
    for (let at = 0; at < bytes; at += TERMINAL_MESSAGE_BYTES) {
      const data = toTerminalText(all.subarray(at, Math.min(bytes, at + TERMINAL_MESSAGE_BYTES)));
      messages.push({ type: 'input', from: this.#typedBytes + at, data });
    }
    const rest = all.subarray(bytes);
    this.#bytes = rest.length > 0 ? [rest] : [];
    if (rest.length > 0) this.#again = true;
    else if (this.#closing) messages.push({ type: 'close' });
    if (rest.length === 0) this.#closing = false;
    return { messages, bytes };
  }

  /** Retries until the mailbox has stored the messages, or the terminal has ended. */
  async #call(messages: readonly string[]): Promise<void> {
    const { redis, session, terminal, read, onReply } = this.#deps;
    while (!this.#ended) {
      const place = { terminal, generation: session.generation, begin: false, number: this.#number, read: read() };
      const reply = await appendTerminalInput(redis, session.keys, { ...place, messages }).catch((error: unknown) =>
        this.#throwUnlessDown(error),
      );
      if (reply !== undefined) {
        this.#answeredAt = performance.now();
        onReply(reply);
        if (reply.type === 'stored') return;
        if (reply.type === 'misplaced' && reply.next === this.#number + messages.length) return;
        if (reply.type === 'misplaced')
          throw new ShellfleetError(
            'INTERNAL',
            `Another process types at terminal ${terminal} of session ${session.id}.`,
          );
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /**
   * Returns while Redis is down, so that the call is retried. Throws other errors, and when Redis is down for longer
   * than a terminal lives without a call.
   */
  #throwUnlessDown(error: unknown): undefined {
    const away = isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE';
    if (!away || performance.now() - this.#answeredAt > TERMINAL_TTL_MS) throw away ? error : toQueueError(error);
  }

  #seal(message: TerminalInputMessage, number: number): string {
    const { sealer, session, terminal } = this.#deps;
    return sealer.seal(JSON.stringify(message), sealPlace('terminal-input', session.keys, { terminal, number }));
  }
}
