import {
  type CommandPayload,
  type OutputChunk,
  type ParsedRunOptions,
  parseOrThrow,
  type ResolvedSessionSpec,
  runOptionsSchema,
  ShellfleetError,
  scriptSchema,
} from '@shellfleet/protocol';
import { z } from 'zod';

export interface RunOptions {
  /** From the first byte to the shell; default: the session's `commandTimeoutMs`. */
  timeoutMs?: number;
  noOutputTimeoutMs?: number;
  /** The whole stop ladder; default 1,500. */
  killGraceMs?: number;
  env?: Record<string, string>;
  cwd?: string;
  stdin?: string | Uint8Array;
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
  options: ParsedRunOptions;
}

const commandSchema = z.object({ script: scriptSchema, options: runOptionsSchema });

/** What is to run, with every default filled in. Throws COMMAND_INVALID with every field that is wrong. */
export function parseCommand(
  script: unknown,
  given: RunOptions,
  spec: Pick<ResolvedSessionSpec, 'commandTimeoutMs'>,
): ParsedCommand {
  const { onOutput: _onOutput, signal: _signal, ...rest } = given ?? {};
  if ((rest.stdin as unknown) === 'open') throw openStdin();
  const { options } = parseOrThrow(commandSchema, { script, options: rest }, 'COMMAND_INVALID', 'The command');
  const { timeoutMs, noOutputTimeoutMs, killGraceMs, env, cwd, stdin, encoding } = options;
  return {
    options,
    payload: {
      type: 'command',
      script: script as string,
      timeoutMs: timeoutMs ?? spec.commandTimeoutMs,
      ...(noOutputTimeoutMs === undefined ? {} : { noOutputTimeoutMs }),
      killGraceMs,
      ...(env === undefined ? {} : { env }),
      ...(cwd === undefined ? {} : { cwd }),
      ...(stdin === undefined ? {} : { stdin: Buffer.from(stdin as string).toString('base64') }),
      encoding,
    },
  };
}

function openStdin(): ShellfleetError {
  const message = "streamed stdin ('open') is not supported; give the whole stdin as text or bytes";
  return new ShellfleetError('COMMAND_INVALID', `The command is not valid: options.stdin: ${message}`, {
    issues: [{ path: 'options.stdin', message }],
  });
}
