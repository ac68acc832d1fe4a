import { type RunOptions, ShellfleetError } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { FLAG_TEXTS } from './flag-texts.ts';
import { collectPair } from './pairs.ts';
import { addSessionFlags, type SessionFlags } from './session-flags.ts';
import { parseDuration } from './units.ts';

export interface CommandFlags extends SessionFlags {
  timeout?: number;
  startDeadline?: number;
  stdin?: boolean;
  tty?: boolean;
  env?: Record<string, string>;
  cwd?: string;
  idempotencyKey?: string;
  escalate?: string;
  traceparent?: boolean;
  json?: boolean;
}

const { RunOptionsInput: options } = FLAG_TEXTS;

/** Flags of the verbs that submit a command. Each has an environment variable. */
export function addCommandFlags(verb: Command, env: NodeJS.ProcessEnv): Command {
  return addSessionFlags(verb, env)
    .addOption(new Option('--timeout <time>', options.timeoutMs).env('SHELLFLEET_TIMEOUT').argParser(parseDuration))
    .addOption(
      new Option('--start-deadline <time>', options.startDeadlineMs)
        .env('SHELLFLEET_START_DEADLINE')
        .argParser(parseDuration),
    )
    .addOption(new Option('-i, --stdin', options.stdin).env('SHELLFLEET_STDIN'))
    .addOption(new Option('-e, --env <name=value>', `${options.env} *`).env('SHELLFLEET_ENV').argParser(collectPair))
    .addOption(new Option('-w, --cwd <path>', options.cwd).env('SHELLFLEET_CWD'))
    .addOption(new Option('--idempotency-key <key>', options.idempotencyKey).env('SHELLFLEET_IDEMPOTENCY_KEY'))
    .addOption(new Option('--escalate <why>', options.escalate).env('SHELLFLEET_ESCALATE'))
    .addOption(new Option('--traceparent', options.traceparent).env('SHELLFLEET_TRACEPARENT'))
    .addOption(jsonFlag())
    .addOption(new Option('-t, --tty').hideHelp());
}

export function jsonFlag(): Option {
  return new Option('--json', 'one JSON object per line on stdout').env('SHELLFLEET_JSON');
}

/** Converts the flags. Throws COMMAND_INVALID for `-t`, which people know from `docker exec`. */
export function toRunOptions(flags: CommandFlags): RunOptions {
  if (flags.tty) {
    throw new ShellfleetError(
      'COMMAND_INVALID',
      'A command has no terminal. Use `shellfleet attach SESSION` for a terminal, or -i alone to send stdin.',
    );
  }
  return {
    ...(flags.timeout === undefined ? {} : { timeoutMs: flags.timeout }),
    ...(flags.startDeadline === undefined ? {} : { startDeadlineMs: flags.startDeadline }),
    ...(flags.env === undefined ? {} : { env: flags.env }),
    ...(flags.cwd === undefined ? {} : { cwd: flags.cwd }),
    ...(flags.idempotencyKey === undefined ? {} : { idempotencyKey: flags.idempotencyKey }),
    ...(flags.escalate === undefined ? {} : { escalate: { justification: flags.escalate } }),
    ...(flags.traceparent ? { traceparent: true } : {}),
    ...(flags.stdin ? { stdin: process.stdin } : {}),
  };
}

/** Stops reading stdin when the command has ended, so that an open stdin does not keep this process running. */
export function leaveStdin(flags: CommandFlags): void {
  if (flags.stdin) process.stdin.destroy();
}
