import { z } from 'zod';
import { executionOptionsSchema } from './execution-options.ts';
import {
  durationSchema,
  encodingSchema,
  escalationSchema,
  narrowedNetworkSchema,
  scriptSchema,
} from './field-schemas.ts';
import { fileOperationSchema } from './file-operation.ts';

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
  /** Present when the command asks to run outside the sandbox. */
  escalate: escalationSchema.optional(),
  /** Narrows the network of the session. */
  network: narrowedNetworkSchema.optional(),
});

export const filePayloadSchema = z.object({ type: z.literal('file'), operation: fileOperationSchema });

export const restartPayloadSchema = z.object({ type: z.literal('restart') });

/** The payload of a mailbox entry. Entries of every kind are ordered, started and finished in the same way. */
export const entryPayloadSchema = z.discriminatedUnion('type', [
  commandPayloadSchema,
  filePayloadSchema,
  restartPayloadSchema,
]);

export type CommandPayload = z.infer<typeof commandPayloadSchema>;
export type FilePayload = z.infer<typeof filePayloadSchema>;
export type EntryPayload = z.infer<typeof entryPayloadSchema>;
export type EntryKind = EntryPayload['type'];
