import { TERMINAL_MESSAGE_BYTES } from '@shellfleet/protocol';
import type { Stage } from '../output/stage.ts';

// What a terminal shows, on its way from the keeper: through a stage that finds what nobody is to read, into messages.
//
// TO1. A message never stands for a raw byte that the stage still holds back, so what is acknowledged can be gone on from.
// TO2. A prompt must show while nothing else comes: what is held back is let go after a short silence, but for what may be the
//      beginning of a secret that the session knows.

/** Longer than the pauses within what a program writes at once, shorter than a person notices. */
const SILENCE_MS = 50;
/** A shorter beginning of a secret is everywhere. */
const LEAST_BEGINNING_BYTES = 4;
/** As much of what was shown as any rule looks back at. */
const CONTEXT_BYTES = 1_024;

/** `blocked`: it releases nothing any more. */
export type TerminalStage = Stage & { readonly blocked?: unknown };

export interface TerminalOutputOptions {
  /** Asked for at first, and after each silence; `before` is what was shown last. */
  createStage(before: Uint8Array): TerminalStage;
  /** What the session knows to be secret. */
  secrets: readonly string[];
  /** Something can be taken. */
  onReady(): void;
  /** A rule withholds everything from here on. */
  onBlocked(): void;
}

export class TerminalOutput {
  readonly #options: TerminalOutputOptions;
  readonly #secrets: Buffer[];
  #stage: TerminalStage;
  #released: Buffer[] = [];
  #rawReceived: number;
  #rawTaken: number;
  /** The last raw bytes: those that the stage holds. */
  #held: Buffer = Buffer.alloc(0);
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
    const { heldBytes, blocked } = this.#stage;
    const tail = Buffer.concat([this.#held, bytes]);
    this.#held = tail.subarray(tail.length - heldBytes);
    if (blocked !== undefined) this.#options.onBlocked();
    else if (heldBytes > 0) this.#silence = setTimeout(() => this.#letGo(), SILENCE_MS).unref();
  }

  /** Nothing more comes. */
  end(): void {
    clearTimeout(this.#silence);
    this.#release(this.#stage.end());
    this.#held = Buffer.alloc(0);
  }

  /** What can be shown now, cut into messages, and the raw offset behind it. */
  take(): { pieces: Buffer[]; rawTo: number } {
    const all = Buffer.concat(this.#released);
    this.#released = [];
    const pieces: Buffer[] = [];
    for (let at = 0; at < all.length; at += TERMINAL_MESSAGE_BYTES)
      pieces.push(all.subarray(at, at + TERMINAL_MESSAGE_BYTES));
    this.#rawTaken = this.#rawReceived - this.#held.length;
    this.#contextTaken = this.#context;
    return { pieces, rawTo: this.#rawTaken };
  }

  /** What was not taken comes again. Returns from where. */
  restart(): number {
    clearTimeout(this.#silence);
    this.#released = [];
    this.#held = Buffer.alloc(0);
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

  #letGo(): void {
    if (this.#secrets.some((secret) => endsWithBeginningOf(this.#held, secret))) return;
    const rest = this.#stage.end();
    this.#held = Buffer.alloc(0);
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
