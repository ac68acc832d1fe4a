import { z } from 'zod';
import { parseOrThrow } from './errors.ts';
import { executionOptionsSchema, MOST_KILL_GRACE_MS } from './execution-options.ts';
import {
  durationSchema,
  encodingSchema,
  escalationSchema,
  narrowedNetworkSchema,
  scriptSchema,
} from './field-schemas.ts';
import { fileOperationSchema } from './file-operation.ts';
import { LIMITS } from './limits.ts';
import { hasLoneSurrogate } from './text.ts';

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
  /** It asks to run outside the sandbox. */
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

/** As the schema. The commonest commands skip it: it takes longer than the rest of their start. Throws INTERNAL. */
export function parseEntryPayload(value: unknown, what: () => string): EntryPayload {
  return isPlainCommand(value) ? value : parseOrThrow(entryPayloadSchema, value, 'INTERNAL', what());
}

/** The most UTF-16 units of a text that surely has no more bytes than a script may have. */
const SURELY_SHORT = LIMITS.scriptBytes / 3;

/** A command without options, of which the schema would change nothing. False means only that the schema has to decide. */
function isPlainCommand(value: unknown): value is CommandPayload {
  if (typeof value !== 'object' || value === null) return false;
  for (const name in value) if (!PLAIN_FIELDS.has(name)) return false;
  const { type, script, timeoutMs, killGraceMs, encoding } = value as Record<string, unknown>;
  return (
    type === 'command' &&
    (encoding === 'utf8' || encoding === 'base64') &&
    isWholeWithin(timeoutMs, LIMITS.timeoutMs) &&
    isWholeWithin(killGraceMs, MOST_KILL_GRACE_MS) &&
    typeof script === 'string' &&
    script.length <= SURELY_SHORT &&
    script.trim() !== '' &&
    !script.includes('\0') &&
    !hasLoneSurrogate(script)
  );
}

const PLAIN_FIELDS: ReadonlySet<string> = new Set(['type', 'script', 'timeoutMs', 'killGraceMs', 'encoding']);

const isWholeWithin = (value: unknown, most: number) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most;
