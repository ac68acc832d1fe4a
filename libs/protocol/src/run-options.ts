import { z } from 'zod';
import { executionOptionsSchema } from './execution-options.ts';
import { durationSchema, encodingSchema } from './field-schemas.ts';
import { LIMITS } from './limits.ts';
import { byteLength } from './text.ts';

const idempotencyKeySchema = z
  .string('must be a string')
  .min(1, { error: 'must not be empty', abort: true })
  .max(LIMITS.idempotencyKeyChars, { error: `must be at most ${LIMITS.idempotencyKeyChars} characters`, abort: true })
  .regex(/^[\x21-\x7e]+$/, 'may only hold visible ASCII characters');

/** Strings or bytes, piece by piece: a Readable, a generator, an array. */
export type StdinSource = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

const stdinSourceSchema = z.custom<StdinSource>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    !ArrayBuffer.isView(value) &&
    (Symbol.asyncIterator in value || Symbol.iterator in value),
);
const stdinSchema = z.union(
  [z.string(), z.instanceof(Uint8Array), stdinSourceSchema],
  "must be a string, bytes, an iterable of them, or 'open'",
);

const optionsSchema = z.strictObject({
  ...executionOptionsSchema.shape,
  /**
   * Standard input. Default: empty (`/dev/null`).
   * - A string or bytes up to 1 MiB are stored with the command.
   * - More bytes, and the pieces of an iterable or a Readable, are streamed by the submitting process while the command runs. Do not change
   *   the bytes until then. If that process ends first, the command is stopped and its Result has the error STDIN_INCOMPLETE.
   * - The word `'open'`: `command.write` and `command.closeStdin` supply it, from any process.
   *
   * A streamed or open stdin cannot be combined with `retry: 'idempotent'`, nor an iterable with `idempotencyKey`.
   */
  stdin: stdinSchema.optional(),
  /** 1 to 256 visible ASCII characters. A second submit with the same key and command in this session returns the first command. */
  idempotencyKey: idempotencyKeySchema.optional(),
  /**
   * `true`: submit resolves only when the command is on the disk of Redis; it rejects with DURABLE_UNSUPPORTED where Redis cannot guarantee
   * that. Default: false.
   */
  durable: z.boolean('must be true or false').default(false),
  /**
   * `'idempotent'`: the command runs again, three times in all, when its shell or its host was lost while it ran. `attempts` of the Result
   * counts. Default: `'never'`.
   */
  retry: z.enum(['never', 'idempotent'], "must be 'never' or 'idempotent'").default('never'),
  /** Encoding of `stdout`, `stderr` and `output` in the Result. Default: `'utf8'`. */
  encoding: encodingSchema.default('utf8'),
  /**
   * Time in ms from acceptance within which the command must start, 1 to 86,400,000 (a day). Else it is not run, and its outcome is
   * `timeout` with the reason `not-started`. Default: no limit.
   */
  startDeadlineMs: durationSchema().optional(),
});

const isStreamed = (stdin: unknown) =>
  stdin === 'open' || (typeof stdin === 'object' && !(stdin instanceof Uint8Array));

/** The options of one command. Every field is optional. Unknown fields are rejected, so that a misspelt one is noticed. */
export const runOptionsSchema = optionsSchema.superRefine(({ stdin, retry, idempotencyKey }, context) => {
  const refuse = (message: string) => context.addIssue({ code: 'custom', path: ['stdin'], message });
  const isLong =
    (typeof stdin === 'string' ? byteLength(stdin) : stdin instanceof Uint8Array ? stdin.byteLength : 0) >
    LIMITS.stdinBytes;
  if (retry === 'idempotent' && (isStreamed(stdin) || isLong))
    refuse(`cannot be read a second time, as retry: 'idempotent' asks for: give at most ${LIMITS.stdinBytes} bytes`);
  if (idempotencyKey !== undefined && stdin !== 'open' && isStreamed(stdin))
    refuse('of unknown content cannot be compared, as an idempotency key asks for: give bytes');
});

export type RunOptionsInput = z.input<typeof runOptionsSchema>;
export type ParsedRunOptions = z.output<typeof runOptionsSchema>;
