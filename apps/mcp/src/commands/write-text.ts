import type { Command } from '@shellfleet/client';
import { abortable } from '@shellfleet/concurrency';
import type { ToolCall } from '../tools/tool-call.ts';
import { withinAnswer } from './within-answer.ts';

/** Characters of one write, which is stored whole or not at all. */
const MOST_CHARACTERS = 65_536;
const NOT_READ = 'The command does not read its standard input.';

/** Writes text to a command until the call has to be answered. Returns the bytes that were written. */
export async function writeText(call: ToolCall, command: Command, text: string, end: boolean) {
  const bytes = Buffer.byteLength(text);
  let written = 0;
  const write = async (signal: AbortSignal) => {
    for (const piece of toPieces(text)) {
      await command.write(piece, { signal });
      written += Buffer.byteLength(piece);
    }
    if (end) await abortable(command.closeStdin(), signal);
  };
  try {
    await withinAnswer(call, NOT_READ, write);
    return { bytes, written, ended: end };
  } catch (error) {
    // The client has to know where to continue.
    if (written === 0 || written === bytes) throw error;
    return { bytes, written, ended: false };
  }
}

/** Returns pieces of a text, with no cut inside a character. */
function* toPieces(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = at + MOST_CHARACTERS;
    const isInside = (text.codePointAt(end - 1) ?? 0) > 0xffff;
    const piece = text.slice(at, isInside ? end - 1 : end);
    at += piece.length;
    yield piece;
  }
}
