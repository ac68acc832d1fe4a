import { isUtf8 } from 'node:buffer';
import type { OutputChunk } from '@shellfleet/client';
import { STREAM_NAMES } from '@shellfleet/protocol';
import { z } from 'zod';

/** A piece of output in an event. The bytes of all pieces of a stream, in their order, are its output. */
export const outputDataSchema = z
  .object({
    stream: z.enum(STREAM_NAMES).describe('The output stream.'),
    seq: z.number().int().describe('Number of the piece in its stream.'),
    data: z.string().describe('The bytes, as `encoding` says.'),
    encoding: z.enum(['utf8', 'base64']).describe('`base64` if these bytes alone are no valid UTF-8.'),
    omittedBytes: z.number().int().optional().describe('Bytes before this piece that the stream does not have.'),
  })
  .meta({ id: 'OutputData', description: 'A piece of the redacted output of a command.' });

export function toOutputData({ stream, seq, data, omittedBytes }: OutputChunk): z.infer<typeof outputDataSchema> {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const encoding = isUtf8(bytes) ? 'utf8' : 'base64';
  return {
    ...{ stream, seq, data: bytes.toString(encoding), encoding },
    ...(omittedBytes === undefined ? {} : { omittedBytes }),
  };
}
