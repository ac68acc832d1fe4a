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

/** Payload of a command with all defaults, stored sealed. */
export const commandPayloadSchema = z.object({
  ...executionOptionsSchema.shape,
  type: z.literal('command'),
  script: scriptSchema,
  timeoutMs: durationSchema(),
  /** base64 */
  stdin: z.string().optional(),
  /** Process that sends the stdin while the command runs: any process (`open`), or the submitter (`streamed`). */
  input: z.enum(['open', 'streamed']).optional(),
  /** Hash of a streamed stdin, for comparison when an idempotency key is used again. */
  inputHash: z.string().optional(),
  encoding: encodingSchema,
  /** Present when the submitter reads all output while the command runs. The command is throttled to this reader. */
  reader: z.literal('attached').optional(),
  /** Present when the command asks to run outside the sandbox. */
  escalate: escalationSchema.optional(),
  network: narrowedNetworkSchema.optional(),
  /** Present when the context of the command's span is set in its variables. */
  traceparent: z.literal(true).optional(),
});

export const filePayloadSchema = z.object({ type: z.literal('file'), operation: fileOperationSchema });

export const restartPayloadSchema = z.object({ type: z.literal('restart') });

/** Payload of a mailbox entry. Entries of every kind are ordered, started and finished in the same way. */
export const entryPayloadSchema = z.discriminatedUnion('type', [
  commandPayloadSchema,
  filePayloadSchema,
  restartPayloadSchema,
]);

export type CommandPayload = z.infer<typeof commandPayloadSchema>;
export type FilePayload = z.infer<typeof filePayloadSchema>;
export type EntryPayload = z.infer<typeof entryPayloadSchema>;
export type EntryKind = EntryPayload['type'];
