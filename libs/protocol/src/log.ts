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

/** A page of a host's log; `data` is base64. Bytes that are missing between two chunks no longer exist. */
export const logPageSchema = z.object({
  pieces: z.array(z.object({ stream: z.enum(STREAM_NAMES), offset: z.number(), data: z.string() })),
  more: z.boolean(),
});
export type LogPage = z.infer<typeof logPageSchema>;
