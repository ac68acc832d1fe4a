import type { RunOptions } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { collectPair } from './pairs.ts';
import { addSessionFlags, type SessionFlags } from './session-flags.ts';
import { parseDuration } from './units.ts';

export interface CommandFlags extends SessionFlags {
  timeout?: number;
  stdin?: boolean;
  env?: Record<string, string>;
  cwd?: string;
  idempotencyKey?: string;
  json?: boolean;
}

/** Flags of the verbs that submit a command. Each has an environment variable. */
export function addCommandFlags(verb: Command, env: NodeJS.ProcessEnv): Command {
  return addSessionFlags(verb, env)
    .addOption(
      new Option('--timeout <time>', 'time limit of the command: 30s, 5m')
        .env('SHELLFLEET_TIMEOUT')
        .argParser(parseDuration),
    )
    .addOption(new Option('--stdin', 'stream stdin to the command').env('SHELLFLEET_STDIN'))
    .addOption(
      new Option('-e, --env <name=value>', 'variable of the command; may be repeated')
        .env('SHELLFLEET_ENV')
        .argParser(collectPair),
    )
    .addOption(new Option('--cwd <path>', 'of the command').env('SHELLFLEET_CWD'))
    .addOption(
      new Option('--idempotency-key <key>', "a second submit with this key gets the first one's Result").env(
        'SHELLFLEET_IDEMPOTENCY_KEY',
      ),
    )
    .addOption(jsonFlag());
}

export function jsonFlag(): Option {
  return new Option('--json', 'one JSON object per line on stdout').env('SHELLFLEET_JSON');
}

export function toRunOptions(flags: CommandFlags): RunOptions {
  return {
    ...(flags.timeout === undefined ? {} : { timeoutMs: flags.timeout }),
    ...(flags.env === undefined ? {} : { env: flags.env }),
    ...(flags.cwd === undefined ? {} : { cwd: flags.cwd }),
    ...(flags.idempotencyKey === undefined ? {} : { idempotencyKey: flags.idempotencyKey }),
    ...(flags.stdin ? { stdin: process.stdin } : {}),
  };
}

/** Stops reading stdin when the command has ended, so that an open stdin does not keep this process running. */
export function leaveStdin(flags: CommandFlags): void {
  if (flags.stdin) process.stdin.destroy();
}
