import { TERMINAL_MESSAGE_BYTES } from '@shellfleet/protocol';
import { CONTEXT_BYTES, type Stage } from '../output/redactor.ts';

// Redacts the output of a terminal and cuts it into messages.
// TERMINAL-OUTPUT-1. A message never covers a pending raw byte, so output can continue from the acknowledged offset.
// TERMINAL-OUTPUT-2. A prompt must appear although no output follows it. So pending bytes are released after a short
//                    silence, unless they may begin one of the session's secrets.

/** Silence that releases pending bytes: longer than pauses within one write of a program, too short to notice. */
const SILENCE_MS = 50;
/** Least length of a secret's beginning that stays pending. Shorter ones are too common. */
const LEAST_BEGINNING_BYTES = 4;

/** Stage of a terminal's output. Once it is `blocked`, it releases nothing. */
export type TerminalStage = Stage & { readonly blocked?: unknown };

export interface TerminalOutputOptions {
  /** Creates the stage at the start and after each silence. `before` are the last bytes that were released. */
  createStage(before: Uint8Array): TerminalStage;
  secrets: readonly string[];
  onReady(): void;
  /** Called when a rule withholds all further output. */
  onBlocked(): void;
}

export class TerminalOutput {
  readonly #options: TerminalOutputOptions;
  readonly #secrets: Buffer[];
  #stage: TerminalStage;
  #released: Buffer[] = [];
  #rawReceived: number;
  #rawTaken: number;
  #pending: Buffer = Buffer.alloc(0);
  #context: Buffer = Buffer.alloc(0);
  #contextTaken: Buffer = Buffer.alloc(0);
  #silence?: NodeJS.Timeout;

  constructor(rawFrom: number, options: TerminalOutputOptions) {
    this.#rawReceived = rawFrom;
    this.#rawTaken = rawFrom;
    this.#options = options;
    this.#secrets = options.secrets.map((secret) => Buffer.from(secret));
    this.#stage = options.createStage(this.#context);
  }

  get isEmpty(): boolean {
    return this.#released.length === 0;
  }

  push(bytes: Buffer): void {
    clearTimeout(this.#silence);
    this.#rawReceived += bytes.length;
    this.#release(this.#stage.push(bytes));
    const { pendingBytes, blocked } = this.#stage;
    const tail = Buffer.concat([this.#pending, bytes]);
    this.#pending = tail.subarray(tail.length - pendingBytes);
    if (blocked !== undefined) this.#options.onBlocked();
    else if (pendingBytes > 0) this.#silence = setTimeout(() => this.#releasePending(), SILENCE_MS).unref();
  }

  end(): void {
    clearTimeout(this.#silence);
    this.#release(this.#stage.end());
    this.#pending = Buffer.alloc(0);
  }

  /** Takes the released output, cut into messages, and the raw offset after it. */
  take(): { pieces: Buffer[]; rawTo: number } {
    const all = Buffer.concat(this.#released);
    this.#released = [];
    const pieces: Buffer[] = [];
    for (let at = 0; at < all.length; at += TERMINAL_MESSAGE_BYTES)
      pieces.push(all.subarray(at, at + TERMINAL_MESSAGE_BYTES));
    this.#rawTaken = this.#rawReceived - this.#pending.length;
    this.#contextTaken = this.#context;
    return { pieces, rawTo: this.#rawTaken };
  }

  /** Prepares for a new connection, on which output that was not taken arrives again. Returns its offset. */
  restart(): number {
    clearTimeout(this.#silence);
    this.#released = [];
    this.#pending = Buffer.alloc(0);
    this.#context = this.#contextTaken;
    this.#stage = this.#options.createStage(this.#context);
    this.#rawReceived = this.#rawTaken;
    return this.#rawTaken;
  }

  #release(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#released.push(bytes);
    this.#context = Buffer.concat([this.#context, bytes]).subarray(-CONTEXT_BYTES);
    this.#options.onReady();
  }

  #releasePending(): void {
    if (this.#secrets.some((secret) => endsWithBeginningOf(this.#pending, secret))) return;
    const rest = this.#stage.end();
    this.#pending = Buffer.alloc(0);
    this.#release(rest);
    this.#stage = this.#options.createStage(this.#context);
  }
}

function endsWithBeginningOf(text: Buffer, secret: Buffer): boolean {
  for (let length = Math.min(text.length, secret.length); length >= LEAST_BEGINNING_BYTES; length -= 1) {
    if (text.subarray(text.length - length).equals(secret.subarray(0, length))) return true;
  }
  return false;
}
