import { TERMINAL_MESSAGE_BYTES } from '@shellfleet/protocol';
import { chainStages, type Stage } from '../output/stage.ts';

// What a terminal shows, on its way from the keeper: through the stages of the session's output, into messages.
//
// TO1. A message never stands for a raw byte that a stage still holds back, so what is acknowledged can be gone on from.
// TO2. A prompt must show while nothing else comes: what is held back is let go after a short silence, but for what may be the
//      beginning of a secret that the session knows.

/** Longer than the pauses within one write of a program, shorter than a person notices. */
const SILENCE_MS = 100;
/** The shorter beginning of a secret is everywhere. */
const LEAST_BEGINNING_BYTES = 4;

export interface TerminalOutputOptions {
  /** What stands between the keeper and Redis; asked for again after a silence. */
  createStages(): Stage[];
  secrets: readonly string[];
  /** Something can be taken. */
  onReady(): void;
}

export class TerminalOutput {
  readonly #options: TerminalOutputOptions;
  readonly #secrets: Buffer[];
  #stage: Stage;
  #released: Buffer[] = [];
  #rawReceived: number;
  #rawTaken: number;
  /** The last raw bytes: among them those that the stage holds. */
  #tail: Buffer = Buffer.alloc(0);
  #silence?: NodeJS.Timeout;

  constructor(rawFrom: number, options: TerminalOutputOptions) {
    this.#rawReceived = rawFrom;
    this.#rawTaken = rawFrom;
    this.#options = options;
    this.#secrets = options.secrets.map((secret) => Buffer.from(secret)).filter((secret) => secret.length > 0);
    this.#stage = chainStages(options.createStages());
  }

  /** What was not taken comes again. Returns from where. */
  restart(): number {
    clearTimeout(this.#silence);
    this.#released = [];
    this.#tail = Buffer.alloc(0);
    this.#stage = chainStages(this.#options.createStages());
    this.#rawReceived = this.#rawTaken;
    return this.#rawTaken;
  }

  push(bytes: Buffer): void {
    clearTimeout(this.#silence);
    this.#rawReceived += bytes.length;
    this.#release(this.#stage.push(bytes));
    this.#tail = Buffer.concat([this.#tail, bytes]);
    this.#tail = this.#tail.subarray(Math.max(0, this.#tail.length - this.#stage.heldBytes));
    if (this.#stage.heldBytes > 0) this.#silence = setTimeout(() => this.#letGo(), SILENCE_MS).unref();
  }

  /** Nothing more comes. */
  end(): void {
    clearTimeout(this.#silence);
    this.#release(this.#stage.end());
    this.#stage = chainStages([]);
  }

  get isEmpty(): boolean {
    return this.#released.length === 0;
  }

  /** What can be shown now, cut into messages, and the raw offset behind it. */
  take(): { pieces: Buffer[]; rawTo: number } {
    const all = Buffer.concat(this.#released);
    this.#released = [];
    const pieces: Buffer[] = [];
    for (let at = 0; at < all.length; at += TERMINAL_MESSAGE_BYTES)
      pieces.push(all.subarray(at, at + TERMINAL_MESSAGE_BYTES));
    this.#rawTaken = this.#rawReceived - this.#stage.heldBytes;
    return { pieces, rawTo: this.#rawTaken };
  }

  #release(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#released.push(bytes);
    this.#options.onReady();
  }

  #letGo(): void {
    if (this.#secrets.some((secret) => endsWithBeginningOf(this.#tail, secret))) return;
    const rest = this.#stage.end();
    this.#stage = chainStages(this.#options.createStages());
    this.#tail = Buffer.alloc(0);
    this.#release(rest);
  }
}

function endsWithBeginningOf(text: Buffer, secret: Buffer): boolean {
  const most = Math.min(text.length, secret.length);
  for (let length = most; length >= LEAST_BEGINNING_BYTES; length -= 1) {
    if (text.subarray(text.length - length).equals(secret.subarray(0, length))) return true;
  }
  return false;
}
