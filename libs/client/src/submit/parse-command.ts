import { createHash } from 'node:crypto';
import {
  type CommandPayload,
  isOpenStdin,
  LIMITS,
  type OutputChunk,
  type ParsedRunOptions,
  parseOrThrow,
  type ResolvedSessionSpec,
  type RunOptionsInput,
  runOptionsSchema,
  type StdinSource,
  scriptSchema,
} from '@shellfleet/protocol';
import { z } from 'zod';

/** How one command is run. Durations are in milliseconds, sizes in bytes. */
export interface RunOptions extends RunOptionsInput {
  /**
   * Receives the output chunk by chunk as it is stored, before the Result resolves. An error that it throws rejects the
   * Result.
   */
  onOutput?: ((chunk: OutputChunk) => void) | undefined;
  /** Ends the caller's wait with the reason of the signal. The command continues; `command.cancel` ends it. */
  signal?: AbortSignal | undefined;
}

export interface ParsedCommand {
  payload: CommandPayload;
  /** The stdin that the submitter has to stream. */
  stream?: StdinSource;
  options: ParsedRunOptions;
}

const commandSchema = z.object({ script: scriptSchema, options: runOptionsSchema });

/** Validates a command without a session. Throws COMMAND_INVALID with every invalid field in `context.issues`. */
export function checkCommand(script: unknown, options: RunOptions): void {
  parseCommand(script, options, { commandTimeoutMs: 1 });
}

/** Validates a command and fills in every default. Throws COMMAND_INVALID as checkCommand does. */
export function parseCommand(
  script: unknown,
  given: RunOptions,
  spec: Pick<ResolvedSessionSpec, 'commandTimeoutMs'>,
): ParsedCommand {
  const { options } = parseOrThrow(
    commandSchema,
    { script, options: withoutCallbacks(given) },
    'COMMAND_INVALID',
    'The command',
  );
  const { stream, ...input } = toInput(options);
  return {
    options,
    ...(stream === undefined ? {} : { stream }),
    payload: {
      type: 'command',
      script: script as string,
      ...toExecution(options, spec.commandTimeoutMs),
      ...input,
      encoding: options.encoding,
      ...(options.attachReader ? { reader: 'attached' as const } : {}),
      ...(options.escalate === undefined ? {} : { escalate: options.escalate }),
      ...(options.network === undefined ? {} : { network: options.network }),
      ...(options.traceparent ? { traceparent: true as const } : {}),
    },
  };
}

/**
 * Returns the options without callbacks and signal. A value that is no object is returned unchanged, because the schema
 * refuses it.
 */
function withoutCallbacks(given: RunOptions): unknown {
  if (typeof given !== 'object' || Array.isArray(given)) return given ?? {};
  const { onOutput: _onOutput, signal: _signal, ...rest } = given ?? {};
  return rest;
}

/**
 * Returns the options that the shell applies. Absent options are left out, so that equal commands have equal payloads.
 */
function toExecution(options: ParsedRunOptions, defaultTimeoutMs: number) {
  const { timeoutMs = defaultTimeoutMs, noOutputTimeoutMs, killGraceMs, env, cwd } = options;
  return {
    timeoutMs,
    killGraceMs,
    ...(noOutputTimeoutMs === undefined ? {} : { noOutputTimeoutMs }),
    ...(env === undefined ? {} : { env }),
    ...(cwd === undefined ? {} : { cwd }),
  };
}

/**
 * Returns the fields of the stdin in the payload. A streamed stdin is hashed if an idempotency key compares payloads.
 */
function toInput({ stdin, idempotencyKey }: ParsedRunOptions) {
  if (stdin === undefined) return {};
  if (isOpenStdin(stdin)) return { input: 'open' as const };
  if (typeof stdin !== 'string' && !(stdin instanceof Uint8Array)) return { input: 'streamed' as const, stream: stdin };
  const bytes = typeof stdin === 'string' ? Buffer.from(stdin) : stdin;
  if (bytes.byteLength <= LIMITS.stdinBytes) return { stdin: Buffer.from(bytes).toString('base64') };
  const inputHash = idempotencyKey === undefined ? undefined : createHash('sha256').update(bytes).digest('base64url');
  return { input: 'streamed' as const, stream: [bytes], ...(inputHash === undefined ? {} : { inputHash }) };
}
