import { z } from 'zod';
import { STREAM_NAMES, type StreamName } from './events.ts';

/** A piece of a command's full log. It is redacted like the stream. */
export interface LogChunk {
  /** Id of the event, when the session's stream has this piece. */
  id?: string;
  /** The output stream. */
  stream: StreamName;
  /** Offset of `data`, in redacted bytes of its stream. */
  offset: number;
  /** Redacted bytes. */
  data: Uint8Array;
  /** The bytes as UTF-8. If two chunks share a character, its text is in the second chunk. */
  text: string;
  /** Bytes before this chunk that no longer exist. */
  omittedBytes?: number;
}

/** A page of a host's log. Bytes that are missing between two pieces no longer exist. */
export interface LogPage {
  pieces: { stream: StreamName; offset: number; data: Uint8Array }[];
  more: boolean;
}

/** The reply with a page. The data of its pieces, of these sizes, follows the reply. */
export const logReplySchema = z.object({
  pieces: z.array(z.object({ stream: z.enum(STREAM_NAMES), offset: z.number(), bytes: z.int().min(0) })),
  more: z.boolean(),
});
type LogReply = z.infer<typeof logReplySchema>;

export function toLogReply({ pieces, more }: LogPage): { reply: LogReply; data: Uint8Array[] } {
  const sized = pieces.map(({ stream, offset, data }) => ({ stream, offset, bytes: data.byteLength }));
  return { reply: { pieces: sized, more }, data: pieces.map(({ data }) => data) };
}

/** Returns the page of a reply and the data that follows it. Throws if their sizes differ. */
export function toLogPage({ pieces, more }: LogReply, data: Uint8Array): LogPage {
  const page: LogPage = { pieces: [], more };
  let at = 0;
  for (const { stream, offset, bytes } of pieces) {
    page.pieces.push({ stream, offset, data: data.subarray(at, at + bytes) });
    at += bytes;
  }
  if (at !== data.byteLength) throw new TypeError(`A page has ${data.byteLength} bytes, and its pieces have ${at}.`);
  return page;
}
