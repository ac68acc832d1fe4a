import { createHash } from 'node:crypto';
import {
  type CommandPayload,
  LIMITS,
  type OutputChunk,
  type ParsedRunOptions,
  parseOrThrow,
  type ResolvedSessionSpec,
  runOptionsSchema,
  scriptSchema,
} from '@shellfleet/protocol';
import { z } from 'zod';
import type { StdinSource } from '../stdin/stream-stdin.ts';

export interface RunOptions {
  /** From the first byte to the shell; default: the session's `commandTimeoutMs`. */
  timeoutMs?: number;
  noOutputTimeoutMs?: number;
  /** The whole stop ladder; default 1,500. */
  killGraceMs?: number;
  env?: Record<string, string>;
  cwd?: string;
  /**
   * Up to 1 MiB of text or bytes travel with the command. More of them, and what an iterable or a Readable brings, is streamed by this process while the
   * command runs: bytes are not to be changed until then, and should this process go away first, the command is stopped (STDIN_INCOMPLETE).
   * 'open' (this very word): what `command.write` brings, from any process, until `command.closeStdin`.
   */
  stdin?: string | Uint8Array | StdinSource;
  idempotencyKey?: string;
  /** Resolves only when the command is on the disk of Redis. */
  durable?: boolean;
  retry?: 'never' | 'idempotent';
  /** Of stdout, stderr and output in the Result. */
  encoding?: 'utf8' | 'base64';
  /** A command that has not started by then ends as a timeout. */
  startDeadlineMs?: number;
  onOutput?: (chunk: OutputChunk) => void;
  /** Ends the wait, not the command. */
  signal?: AbortSignal;
}

export interface ParsedCommand {
  payload: CommandPayload;
  /** To be streamed by the submitter. */
  stream?: StdinSource;
  options: ParsedRunOptions;
}

const commandSchema = z.object({ script: scriptSchema, options: runOptionsSchema });

/** Throws COMMAND_INVALID for a command that no session would take: to be asked before one is opened for it. */
export function checkCommand(script: unknown, options: RunOptions): void {
  parseCommand(script, options, { commandTimeoutMs: 1 });
}

/** What is to run, with every default filled in. Throws COMMAND_INVALID with every field that is wrong. */
export function parseCommand(
  script: unknown,
  given: RunOptions,
  spec: Pick<ResolvedSessionSpec, 'commandTimeoutMs'>,
): ParsedCommand {
  const { onOutput: _onOutput, signal: _signal, ...rest } = given ?? {};
  const { options } = parseOrThrow(commandSchema, { script, options: rest }, 'COMMAND_INVALID', 'The command');
  const { timeoutMs, noOutputTimeoutMs, killGraceMs, env, cwd, stdin, encoding } = options;
  const { stream, ...input } = toInput(stdin, options);
  return {
    options,
    ...(stream === undefined ? {} : { stream }),
    payload: {
      type: 'command',
      script: script as string,
      timeoutMs: timeoutMs ?? spec.commandTimeoutMs,
      ...(noOutputTimeoutMs === undefined ? {} : { noOutputTimeoutMs }),
      killGraceMs,
      ...(env === undefined ? {} : { env }),
      ...(cwd === undefined ? {} : { cwd }),
      ...input,
      encoding,
    },
  };
}

/** How the stdin reaches the command. An idempotency key compares what is streamed by its hash. */
function toInput(stdin: ParsedRunOptions['stdin'], { idempotencyKey }: ParsedRunOptions) {
  if (stdin === undefined) return {};
  if (stdin === 'open') return { input: 'open' as const };
  if (typeof stdin !== 'string' && !(stdin instanceof Uint8Array)) return { input: 'streamed' as const, stream: stdin };
  const bytes = typeof stdin === 'string' ? Buffer.from(stdin) : stdin;
  if (bytes.byteLength <= LIMITS.stdinBytes) return { stdin: Buffer.from(bytes).toString('base64') };
  const inputHash = idempotencyKey === undefined ? undefined : createHash('sha256').update(bytes).digest('base64url');
  return { input: 'streamed' as const, stream: [bytes], ...(inputHash === undefined ? {} : { inputHash }) };
}
