import { z } from 'zod';
import { executionOptionsSchema } from './execution-options.ts';
import { durationSchema, encodingSchema, scriptSchema } from './field-schemas.ts';

/** The payload of a command, which is stored sealed. Every default is filled in. */
export const commandPayloadSchema = z.object({
  ...executionOptionsSchema.shape,
  type: z.literal('command'),
  script: scriptSchema,
  timeoutMs: durationSchema(),
  /** base64 */
  stdin: z.string().optional(),
  /** The stdin is sent while the command runs: by any process (`open`), or by the submitter (`streamed`). */
  input: z.enum(['open', 'streamed']).optional(),
  /** Hash of a streamed stdin. It is compared when an idempotency key is used again. */
  inputHash: z.string().optional(),
  encoding: encodingSchema,
  /** Its submitter reads all of its output while it runs, and it is throttled to that reader. */
  reader: z.literal('attached').optional(),
});

/** One step of a file operation; larger files are transferred in several parts. `data` is base64. */
export const filePayloadSchema = z.object({
  type: z.literal('file'),
  operation: z.discriminatedUnion('name', [
    z.object({ name: z.literal('read'), path: z.string(), offset: z.number(), length: z.number() }),
    /** Parts go to a temporary file beside the path. The last part renames it to the path. */
    z.object({
      name: z.literal('write'),
      path: z.string(),
      offset: z.number(),
      last: z.boolean(),
      transfer: z.string(),
      data: z.string(),
    }),
    z.object({ name: z.literal('list'), path: z.string() }),
    z.object({ name: z.literal('remove'), path: z.string() }),
  ]),
});

export const restartPayloadSchema = z.object({ type: z.literal('restart') });

/** The payload of a mailbox entry. Entries of every kind are ordered, started and finished in the same way. */
export const entryPayloadSchema = z.discriminatedUnion('type', [
  commandPayloadSchema,
  filePayloadSchema,
  restartPayloadSchema,
]);

export type CommandPayload = z.infer<typeof commandPayloadSchema>;
export type FilePayload = z.infer<typeof filePayloadSchema>;
export type FileOperation = FilePayload['operation'];
export type EntryPayload = z.infer<typeof entryPayloadSchema>;
export type EntryKind = EntryPayload['type'];
