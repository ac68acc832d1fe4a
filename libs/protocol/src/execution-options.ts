import { z } from 'zod';
import { envSchema } from './env.ts';
import { durationSchema, sandboxPathSchema } from './field-schemas.ts';

export const DEFAULT_KILL_GRACE_MS = 1_500;

/**
 * The options of a command that its shell applies. RunOptions, the sealed payload and the start message to the keeper all have these
 * fields, which are therefore described only here.
 */
export const executionOptionsSchema = z.strictObject({
  /** Wall clock limit in ms, from the first byte to the shell; 1 to 86,400,000 (a day). Default: `commandTimeoutMs` of the session. */
  timeoutMs: durationSchema().optional(),
  /** Limit in ms on the time without any output; 1 to 86,400,000 (a day). Default: no limit. */
  noOutputTimeoutMs: durationSchema().optional(),
  /** Time in ms that stopping the command may take, from interrupt through terminate to kill; 0 to 60,000. Default: 1,500. */
  killGraceMs: durationSchema(0, 60_000).default(DEFAULT_KILL_GRACE_MS),
  /**
   * Variables for this command only. Names match `[A-Za-z_][A-Za-z0-9_]*`; a value is at most 131,072 bytes, all of them 1 MiB. Names that
   * change how the shell itself runs (`BASH_ENV`, `IFS`, `LD_PRELOAD`, …) are refused. Default: none.
   */
  env: envSchema.optional(),
  /**
   * Working directory for this command only: an absolute path of at most 4,096 bytes. When it does not exist or may
   * not be entered, nothing runs and the outcome is `error` (COMMAND_INVALID). Default: the current directory of the shell.
   */
  cwd: sandboxPathSchema.optional(),
});

/** The options as a caller passes them. */
export type ExecutionOptions = z.input<typeof executionOptionsSchema>;
