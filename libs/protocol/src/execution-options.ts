import { z } from 'zod';
import { DEFAULTS } from './defaults.ts';
import { envSchema } from './env.ts';
import { durationSchema, sandboxPathSchema, UP_TO_A_DAY } from './field-schemas.ts';

/** The options of a command that its shell applies. */
export interface ExecutionOptions {
  /**
   * Wall clock limit in ms, from the first byte to the shell. Waiting for a slot or for other commands does not count.
   * @default `commandTimeoutMs` of the session
   * @limit 1 to 86,400,000 ms (a day)
   */
  timeoutMs?: number | undefined;
  /**
   * Limit in ms on the time without any output.
   * @default no limit
   * @limit 1 to 86,400,000 ms (a day)
   */
  noOutputTimeoutMs?: number | undefined;
  /**
   * Time in ms that stopping the command may take, from interrupt through terminate to kill.
   * @default 1,500
   * @limit 0 to 60,000 ms
   */
  killGraceMs?: number | undefined;
  /**
   * Variables for this command only, but none that change how the shell runs (`BASH_ENV`, `IFS`, `LD_PRELOAD`, …).
   * @default none
   * @limit names match `[A-Za-z_][A-Za-z0-9_]*`; a value at most 131,072 bytes, all of them 1 MiB
   */
  env?: Record<string, string> | undefined;
  /**
   * Working directory for this command only. If it cannot be entered, the outcome is `error` (COMMAND_INVALID).
   * @default the current directory of the shell
   * @limit an absolute path of at most 4,096 bytes
   */
  cwd?: string | undefined;
}

const MOST_KILL_GRACE_MS = 60_000;

/** Shared by RunOptions, the sealed payload and the start message to the keeper, so described only here. */
export const executionOptionsSchema = z
  .strictObject({
    timeoutMs: durationSchema()
      .optional()
      .meta({
        description:
          'Wall clock limit in ms, from the first byte to the shell. Waiting for a slot or for other commands ' +
          'does not count.',
        otherwise: '`commandTimeoutMs` of the session',
        limit: UP_TO_A_DAY,
        flag: 'time limit of the command: 30s, 5m',
      }),
    noOutputTimeoutMs: durationSchema()
      .optional()
      .meta({ description: 'Limit in ms on the time without any output.', otherwise: 'no limit', limit: UP_TO_A_DAY }),
    killGraceMs: durationSchema(0, MOST_KILL_GRACE_MS).default(DEFAULTS.command.killGraceMs).meta({
      description: 'Time in ms that stopping the command may take, from interrupt through terminate to kill.',
      limit: '0 to 60,000 ms',
    }),
    env: envSchema.optional().meta({
      description:
        'Variables for this command only, but none that change how the shell runs (`BASH_ENV`, `IFS`, ' +
        '`LD_PRELOAD`, …).',
      otherwise: 'none',
      limit: 'names match `[A-Za-z_][A-Za-z0-9_]*`; a value at most 131,072 bytes, all of them 1 MiB',
      flag: 'variable of the command',
    }),
    cwd: sandboxPathSchema.optional().meta({
      description:
        'Working directory for this command only. If it cannot be entered, the outcome is `error` ' +
        '(COMMAND_INVALID).',
      otherwise: 'the current directory of the shell',
      limit: 'an absolute path of at most 4,096 bytes',
      flag: 'directory of the command',
    }),
  })
  .meta({ id: 'ExecutionOptions', description: 'The options of a command that its shell applies.' });
