import { z } from 'zod';
import { envSchema } from './env.ts';
import { LIMITS } from './limits.ts';
import { byteLength, hasLoneSurrogate } from './text.ts';

/** Milliseconds, whole, up to a day: longer ones overflow the timers of most systems. */
export function durationSchema(minimum = 1, maximum: number = LIMITS.timeoutMs) {
  return z
    .number('must be a number of milliseconds')
    .int('must be a whole number of milliseconds')
    .min(minimum, `must be ${minimum} to ${maximum} ms`)
    .max(maximum, `must be ${minimum} to ${maximum} ms`);
}

/** Text that a shell can be given: valid Unicode, no NUL, within a size in bytes. */
export function shellTextSchema(limitBytes: number) {
  return z.string('must be a string').superRefine((text, context) => {
    const refuse = (message: string) => context.addIssue({ code: 'custom', message });
    if (text.includes('\0')) refuse(`holds a NUL byte at offset ${text.indexOf('\0')}`);
    if (hasLoneSurrogate(text)) refuse('is not valid Unicode (lone surrogate)');
    const size = byteLength(text);
    if (size > limitBytes) refuse(`is ${size} bytes; the limit is ${limitBytes}`);
  });
}

export const scriptSchema = shellTextSchema(LIMITS.scriptBytes).refine(
  (script) => script.trim() !== '',
  'must not be empty',
);

/** An absolute path inside the sandbox. What it resolves to is the sandbox's business. */
export const sandboxPathSchema = shellTextSchema(LIMITS.pathBytes).refine(
  (path) => path.startsWith('/'),
  'must be an absolute path',
);

export const idempotencyKeySchema = z
  .string('must be a string')
  .min(1, { error: 'must not be empty', abort: true })
  .max(LIMITS.idempotencyKeyChars, { error: `must be at most ${LIMITS.idempotencyKeyChars} characters`, abort: true })
  .regex(/^[\x21-\x7e]+$/, 'may only hold visible ASCII characters');

/** What brings the bytes of a stdin one piece after another: a Readable, a generator, a list of pieces. */
const pieces = z.custom<AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    !ArrayBuffer.isView(value) &&
    (Symbol.asyncIterator in value || Symbol.iterator in value),
);
const stdinSchema = z.union(
  [z.string(), z.instanceof(Uint8Array), pieces],
  "must be a string, bytes, an iterable of them, or 'open'",
);

const optionsSchema = z.strictObject({
  timeoutMs: durationSchema().optional(),
  noOutputTimeoutMs: durationSchema().optional(),
  /** The whole stop ladder, interrupt to kill. */
  killGraceMs: durationSchema(0, 60_000).default(1_500),
  env: envSchema.optional(),
  cwd: sandboxPathSchema.optional(),
  stdin: stdinSchema.optional(),
  idempotencyKey: idempotencyKeySchema.optional(),
  durable: z.boolean('must be true or false').default(false),
  retry: z.enum(['never', 'idempotent'], "must be 'never' or 'idempotent'").default('never'),
  encoding: z.enum(['utf8', 'base64'], "must be 'utf8' or 'base64'").default('utf8'),
  startDeadlineMs: durationSchema().optional(),
});

const isFed = (stdin: unknown) => stdin === 'open' || (typeof stdin === 'object' && !(stdin instanceof Uint8Array));

/** What a caller may say of one command. Everything is optional; unknown fields are refused, so that a typing error is not silence. */
export const runOptionsSchema = optionsSchema.superRefine(({ stdin, retry, idempotencyKey }, context) => {
  const refuse = (message: string) => context.addIssue({ code: 'custom', path: ['stdin'], message });
  const isLong =
    (typeof stdin === 'string' ? byteLength(stdin) : stdin instanceof Uint8Array ? stdin.byteLength : 0) >
    LIMITS.stdinBytes;
  if (retry === 'idempotent' && (isFed(stdin) || isLong))
    refuse(`cannot be read a second time, as retry: 'idempotent' asks for: give at most ${LIMITS.stdinBytes} bytes`);
  if (idempotencyKey !== undefined && stdin !== 'open' && isFed(stdin))
    refuse('of unknown content cannot be compared, as an idempotency key asks for: give bytes');
});
export type ParsedRunOptions = z.infer<typeof runOptionsSchema>;

/** What a command's entry carries to the host, sealed. `stdin` is base64; with `input` it comes while the command runs, and `inputHash` tells equal ones. */
export const commandPayloadSchema = z.object({
  type: z.literal('command'),
  script: z.string(),
  timeoutMs: z.number(),
  noOutputTimeoutMs: z.number().optional(),
  killGraceMs: z.number(),
  env: z.record(z.string(), z.string()).optional(),
  cwd: z.string().optional(),
  stdin: z.string().optional(),
  input: z.enum(['open', 'streamed']).optional(),
  inputHash: z.string().optional(),
  encoding: z.enum(['utf8', 'base64']),
});

/** One step of a file operation; larger files travel as several parts. `data` is base64. */
export const filePayloadSchema = z.object({
  type: z.literal('file'),
  operation: z.discriminatedUnion('name', [
    z.object({ name: z.literal('read'), path: z.string(), offset: z.number(), length: z.number() }),
    /** Parts go to a temporary file beside the path; the last one puts it in place. */
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

/** What an entry of a mailbox asks for. All kinds are ordered, started and finished alike. */
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
