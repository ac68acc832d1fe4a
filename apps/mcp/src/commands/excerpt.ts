import type { Command } from '@shellfleet/client';
import { MODEL_OUTPUT } from '../settings.ts';

const HALF = MODEL_OUTPUT.maxBytes / 2;

/** The beginning and the end of a text that may be long, in at most as many characters as a model gets bytes. */
class Excerpt {
  #head = '';
  #tail = '';
  #omitted = 0;

  get isCut(): boolean {
    return this.#omitted > 0;
  }

  push(text: string): void {
    const room = HALF - this.#head.length;
    this.#head += text.slice(0, room);
    const rest = this.#tail + text.slice(room);
    this.#omitted += Math.max(0, rest.length - HALF);
    this.#tail = rest.slice(-HALF);
  }

  toString(): string {
    const omitted = this.isCut ? `\n[... ${this.#omitted} characters omitted ...]\n` : '';
    // A cut may be inside a character of two units.
    return `${this.#head}${omitted}${this.#tail}`.toWellFormed();
  }
}

/** Returns a text, or its beginning and end if it is too long for a model. */
export function shorten(text: string): string {
  const excerpt = new Excerpt();
  excerpt.push(text);
  return excerpt.toString();
}

/** Output of a command, short enough for a model. */
export interface OutputExcerpt {
  stdout: string;
  stderr: string;
  /** Both streams in their order. */
  output: string;
  isCut: boolean;
  /** Bytes of the whole output, those that the stream does not carry included. */
  bytes: number;
  /** Id of the last chunk, to continue after it. */
  next: string | undefined;
}

/** Reads what a command has written so far, from the beginning or after a chunk. */
export async function readExcerpt(
  command: Command,
  after: string | undefined,
  signal: AbortSignal,
): Promise<OutputExcerpt> {
  const excerpts = { stdout: new Excerpt(), stderr: new Excerpt(), output: new Excerpt() };
  let bytes = 0;
  let next = after;
  for await (const { id, stream, text, data, omittedBytes = 0 } of command.output({ after, follow: false, signal })) {
    next = id;
    bytes += data.byteLength + omittedBytes;
    const piece = omittedBytes > 0 ? `\n[... ${omittedBytes} bytes omitted ...]\n${text}` : text;
    excerpts[stream].push(piece);
    excerpts.output.push(piece);
  }
  return {
    stdout: excerpts.stdout.toString(),
    stderr: excerpts.stderr.toString(),
    output: excerpts.output.toString(),
    isCut: excerpts.output.isCut,
    bytes,
    next,
  };
}
