import { isUtf8 } from 'node:buffer';
import type { OutputChunk } from '@shellfleet/client';
import { STREAM_NAMES } from '@shellfleet/protocol';
import { z } from 'zod';
import type { ServerEvent } from './send-events.ts';

/** A piece of output in an event. The bytes of all pieces of a stream, in their order, are its output. */
export const outputDataSchema = z
  .object({
    stream: z.enum(STREAM_NAMES).describe('The output stream.'),
    seq: z.number().int().describe('Number of the piece in its stream.'),
    data: z.string().describe('The bytes, as `encoding` says.'),
    encoding: z.enum(['utf8', 'base64']).describe('`base64` if these bytes alone are no valid UTF-8.'),
    omittedBytes: z.number().int().optional().describe('Bytes before this piece that the stream does not have.'),
    omittedBecause: z
      .enum(['over-budget', 'withheld', 'trimmed'])
      .optional()
      .describe('Why it does not have them. Present together with `omittedBytes`.'),
  })
  .meta({ id: 'OutputData', description: 'A piece of the redacted output of a command.' });

export function toOutputData(chunk: OutputChunk): z.infer<typeof outputDataSchema> {
  const { stream, seq, data, omittedBytes, omittedBecause } = chunk;
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const encoding = isUtf8(bytes) ? 'utf8' : 'base64';
  return {
    ...{ stream, seq, data: bytes.toString(encoding), encoding },
    ...(omittedBytes === undefined ? {} : { omittedBytes, omittedBecause }),
  };
}

const events = new WeakMap<Uint8Array, ServerEvent>();

/** Returns the event of a piece of output, the same for all streams with this piece. */
export function toOutputEvent(chunk: OutputChunk): ServerEvent {
  const { id, data, omittedBytes } = chunk;
  const make = (): ServerEvent => ({ id, type: 'command.output', data: toOutputData(chunk) });
  // How many bytes are missing before a piece depends on where its reader began.
  if (omittedBytes !== undefined) return make();
  const made = events.get(data) ?? make();
  events.set(data, made);
  return made;
}
