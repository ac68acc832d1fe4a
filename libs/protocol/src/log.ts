import { z } from 'zod';
import type { StreamName } from './events.ts';

/** A piece of a command's full log: redacted, as the stream has it. */
export interface LogChunk {
  /** Of its entry, where the session's stream has it. */
  id?: string;
  stream: StreamName;
  /** Where `data` begins, in redacted bytes of its stream. */
  offset: number;
  data: Uint8Array;
  text: string;
  /** Bytes that are gone before this chunk. */
  omittedBytes?: number;
}

/** A part of the log as its host hands it out; `data` is base64. What is missing between two pieces of a stream is gone. */
export const logPageSchema = z.object({
  pieces: z.array(z.object({ stream: z.enum(['stdout', 'stderr']), offset: z.number(), data: z.string() })),
  more: z.boolean(),
});
export type LogPage = z.infer<typeof logPageSchema>;
