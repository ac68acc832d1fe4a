import { z } from 'zod';
import { DEFAULTS } from './defaults.ts';
import { type ExecutionOptions, executionOptionsSchema } from './execution-options.ts';
import {
  durationSchema,
  encodingSchema,
  escalationSchema,
  narrowedNetworkSchema,
  UP_TO_A_DAY,
} from './field-schemas.ts';
import { LIMITS } from './limits.ts';
import { byteLength } from './text.ts';

/** A key by which a second submit finds the command of the first. */
export const idempotencyKeySchema = z
  .string('must be a string')
  .min(1, { error: 'must not be empty', abort: true })
  .max(LIMITS.idempotencyKeyChars, { error: `must be at most ${LIMITS.idempotencyKeyChars} characters`, abort: true })
  .regex(/^[\x21-\x7e]+$/, 'may only hold visible ASCII characters');

/** Strings or bytes, piece by piece: a Readable, a generator, an array. */
export type StdinSource = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

/** A stdin that `command.write` and `command.closeStdin` supply, from any process. */
export interface OpenStdin {
  open: true;
}

/** The options of one command that are data. Every field is optional; `undefined` is the same as absent. */
export interface RunOptionsInput extends ExecutionOptions {
  /**
   * Standard input. It ends with the command.
   * - A string or bytes up to 1 MiB are stored with the command.
   * - More bytes, and the pieces of an iterable or a Readable, are streamed by the submitting process while the command
   *   runs. Do not change the bytes until then. If that process ends first, the command is stopped and its Result has
   *   the error STDIN_INCOMPLETE.
   * - `{ open: true }`: `command.write` and `command.closeStdin` supply it, from any process.
   *
   * A streamed or open stdin cannot be combined with `retry: 'idempotent'`, nor an iterable with `idempotencyKey`.
   * @default empty (`/dev/null`)
   */
  stdin?: string | Uint8Array | StdinSource | OpenStdin | undefined;
  /**
   * A second submit of the same command and key in this session returns the first command. With another command it
   * rejects with IDEMPOTENCY_CONFLICT.
   * @default none
   * @limit 1 to 256 visible ASCII characters
   */
  idempotencyKey?: string | undefined;
  /**
   * Whether `submit` waits until the command is on the disk of Redis, or rejects with DURABLE_UNSUPPORTED.
   * @default false
   */
  durable?: boolean | undefined;
  /**
   * Whether the command runs again when its shell or host was lost while it ran. `'idempotent'`: three starts in all.
   * @default 'never'
   */
  retry?: 'never' | 'idempotent' | undefined;
  /**
   * Encoding of `stdout`, `stderr` and `output` in the Result. Invalid UTF-8 becomes U+FFFD in `utf8`.
   * @default 'utf8'
   */
  encoding?: 'utf8' | 'base64' | undefined;
  /**
   * Whether `onOutput`, or `output()` of the submitted command, yields the whole output, whatever its size. The command
   * is then throttled to this one reader, as a program is to the reader of its pipe: it waits in its next write while
   * more than about 12 MiB over the budget of the stream are unread, and its `timeoutMs` continues. It no longer waits
   * when the reader reads nothing for 60 s (`SHELLFLEET_READER_STALL` of the host), or is gone for 10 s. Bytes that the
   * overflow log then lacks are counted in `omittedBytes`.
   * @default false
   */
  attachReader?: boolean | undefined;
  /**
   * Time in ms from acceptance within which the command must start, or end as `timeout` (`not-started`).
   * @default no limit
   * @limit 1 to 86,400,000 ms (a day)
   */
  startDeadlineMs?: number | undefined;
  /**
   * Asks to run once outside the sandbox, in a separate shell in the wider sandbox that the operator of the host has
   * named. A person is asked, unless the operator's rules allow it. Where nothing may be asked the outcome is `denial`;
   * without a wider sandbox it is `error` (SANDBOX_UNAVAILABLE).
   * @default the command runs inside
   * @limit a justification of 1 to 1,024 characters
   */
  escalate?: Escalation | undefined;
  /**
   * Network of this command, if it is narrower than that of the session. A wider network is refused.
   * @default that of the session
   */
  network?: 'restricted' | 'limited' | undefined;
  /**
   * Whether the command, and no other of its session, gets the context of its span in the variables `TRACEPARENT` and
   * `TRACESTATE`, so that programs that trace continue the trace. Nothing is set if neither its host nor its submitter
   * traces.
   * @default false
   */
  traceparent?: boolean | undefined;
}

/** A request to leave the sandbox. */
export interface Escalation {
  /** Why the command asks to leave the sandbox, in the submitter's words. The approver sees it as untrusted text. */
  justification: string;
}

const stdinSourceSchema = z.custom<StdinSource>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    !ArrayBuffer.isView(value) &&
    (Symbol.asyncIterator in value || Symbol.iterator in value),
);
/** Parses an open stdin. Bytes of a wrong type do not count as an open stdin with wrong fields. */
const openStdinSchema = z
  .custom<{ open: true }>((value) => !ArrayBuffer.isView(value))
  .pipe(z.strictObject({ open: z.literal(true, 'must be true') }));
type Stdin = NonNullable<RunOptionsInput['stdin']>;
const stdinSchema: z.ZodType<Stdin, Stdin> = z.union(
  [z.string(), z.instanceof(Uint8Array), openStdinSchema, stdinSourceSchema],
  'must be a string, bytes, an iterable of them, or { open: true }',
);

const optionsSchema = z.strictObject({
  ...executionOptionsSchema.shape,
  stdin: stdinSchema.optional().meta({
    description:
      'Standard input. It ends with the command.\n- A string or bytes up to 1 MiB are stored with the ' +
      'command.\n- More bytes, and the pieces of an iterable or a Readable, are streamed by the submitting ' +
      'process while the command runs. Do not change the bytes until then. If that process ends first, ' +
      'the command is stopped and its Result has the error STDIN_INCOMPLETE.\n- `{ open: true }`: ' +
      '`command.write` and `command.closeStdin` supply it, from any process.\n\nA streamed or open stdin ' +
      "cannot be combined with `retry: 'idempotent'`, nor an iterable with `idempotencyKey`.",
    otherwise: 'empty (`/dev/null`)',
    flag: 'stream stdin to the command',
  }),
  idempotencyKey: idempotencyKeySchema.optional().meta({
    description:
      'A second submit of the same command and key in this session returns the first command. With ' +
      'another command it rejects with IDEMPOTENCY_CONFLICT.',
    otherwise: 'none',
    limit: '1 to 256 visible ASCII characters',
    flag: "a second submit with this key gets the first one's Result",
  }),
  durable: z.boolean('must be true or false').default(DEFAULTS.command.durable).meta({
    description:
      'Whether `submit` waits until the command is on the disk of Redis, or rejects with DURABLE_UNSUPPORTED.',
  }),
  retry: z
    .enum(['never', 'idempotent'], "must be 'never' or 'idempotent'")
    .default(DEFAULTS.command.retry)
    .meta({
      description:
        "Whether the command runs again when its shell or host was lost while it ran. `'idempotent'`: three " +
        'starts in all.',
    }),
  encoding: encodingSchema.default(DEFAULTS.command.encoding).meta({
    description: 'Encoding of `stdout`, `stderr` and `output` in the Result. Invalid UTF-8 becomes U+FFFD in `utf8`.',
  }),
  attachReader: z
    .boolean('must be true or false')
    .default(DEFAULTS.command.attachReader)
    .meta({
      description:
        'Whether `onOutput`, or `output()` of the submitted command, yields the whole output, whatever its ' +
        'size. The command is then throttled to this one reader, as a program is to the reader of its pipe: ' +
        'it waits in its next write while more than about 12 MiB over the budget of the stream are unread, ' +
        'and its `timeoutMs` continues. It no longer waits when the reader reads nothing for 60 s ' +
        '(`SHELLFLEET_READER_STALL` of the host), or is gone for 10 s. Bytes that the overflow log then ' +
        'lacks are counted in `omittedBytes`.',
    }),
  startDeadlineMs: durationSchema().optional().meta({
    description: 'Time in ms from acceptance within which the command must start, or end as `timeout` (`not-started`).',
    otherwise: 'no limit',
    limit: UP_TO_A_DAY,
    flag: 'time within which it must start: 30s, 10m',
  }),
  escalate: escalationSchema.optional().meta({
    description:
      'Asks to run once outside the sandbox, in a separate shell in the wider sandbox that the operator ' +
      "of the host has named. A person is asked, unless the operator's rules allow it. Where nothing may " +
      'be asked the outcome is `denial`; without a wider sandbox it is `error` (SANDBOX_UNAVAILABLE).',
    otherwise: 'the command runs inside',
    limit: 'a justification of 1 to 1,024 characters',
    flag: 'ask to run outside the sandbox of the session',
  }),
  network: narrowedNetworkSchema.optional().meta({
    description: 'Network of this command, if it is narrower than that of the session. A wider network is refused.',
    otherwise: 'that of the session',
  }),
  traceparent: z
    .boolean('must be true or false')
    .default(DEFAULTS.command.traceparent)
    .meta({
      description:
        'Whether the command, and no other of its session, gets the context of its span in the variables ' +
        '`TRACEPARENT` and `TRACESTATE`, so that programs that trace continue the trace. Nothing is set if ' +
        'neither its host nor its submitter traces.',
      flag: 'set TRACEPARENT of the command to its span, if something traces',
    }),
});

/** The options that a program may write down as JSON, apart from stdin and idempotency key. */
export const runDataSchema = optionsSchema.omit({ stdin: true, idempotencyKey: true, attachReader: true });

export function isOpenStdin(stdin: unknown): stdin is OpenStdin {
  return typeof stdin === 'object' && stdin !== null && 'open' in stdin && stdin.open === true;
}

/** Tells whether the stdin is sent while the command runs. */
const isStreamed = (stdin: unknown) => typeof stdin === 'object' && !(stdin instanceof Uint8Array);

/** Checks the options of one command. Unknown fields are rejected, so that a misspelt one is noticed. */
export const runOptionsSchema = optionsSchema
  .superRefine(({ stdin, retry, idempotencyKey }, context) => {
    const refuse = (message: string) => context.addIssue({ code: 'custom', path: ['stdin'], message });
    const isLong =
      (typeof stdin === 'string' ? byteLength(stdin) : stdin instanceof Uint8Array ? stdin.byteLength : 0) >
      LIMITS.stdinBytes;
    if (retry === 'idempotent' && (isStreamed(stdin) || isLong))
      refuse(`cannot be read a second time, as retry: 'idempotent' asks for: give at most ${LIMITS.stdinBytes} bytes`);
    if (idempotencyKey !== undefined && isStreamed(stdin) && !isOpenStdin(stdin))
      refuse('of unknown content cannot be compared, as an idempotency key asks for: give bytes');
  })
  .meta({
    id: 'RunOptionsInput',
    description:
      'The options of one command that are data. Every field is optional; `undefined` is the same as absent.',
  });

export type ParsedRunOptions = z.output<typeof runOptionsSchema>;
