import { z } from 'zod';
import { executionOptionsSchema } from './execution-options.ts';
import { durationSchema, encodingSchema, scriptSchema } from './field-schemas.ts';

/** A command as its entry carries it to the host, sealed; every default is filled in. */
export const commandPayloadSchema = z.object({
  ...executionOptionsSchema.shape,
  type: z.literal('command'),
  script: scriptSchema,
  timeoutMs: durationSchema(),
  /** base64 */
  stdin: z.string().optional(),
  /** The stdin comes while the command runs: from any process (`open`), or from the submitter (`streamed`). */
  input: z.enum(['open', 'streamed']).optional(),
  /** Hash of a streamed stdin, so that an idempotency key can compare it. */
  inputHash: z.string().optional(),
  encoding: encodingSchema,
});

/** One step of a file operation; larger files travel as several parts. `data` is base64. */
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

/** What an entry of a mailbox asks for. Entries of every kind are ordered, started and finished alike. */
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
