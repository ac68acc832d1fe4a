import { OUTPUT_PROFILES, type SessionSpec, TIMEOUT_PROFILES } from '@shellfleet/client';
import { z } from 'zod';

/** Where the shell of a middleware runs, with its bounds. The classes beside it are the policies of LangChain. */
export interface ShellExecutionPolicy {
  /** Part of the session's spec that the policy sets. */
  readonly spec: SessionSpec;
}

/** Options that every policy has. */
export interface ExecutionPolicyOptions {
  /**
   * Limit of a command in ms.
   * @default 30,000
   */
  commandTimeoutMs?: number | undefined;
  /**
   * Limit in ms for opening the sandbox and running all start-up commands.
   * @default 30,000
   */
  startupTimeoutMs?: number | undefined;
  /**
   * Limit in ms for ending the shell.
   * @default 10,000
   */
  terminationTimeoutMs?: number | undefined;
  /**
   * Lines of each output stream that the model reads, from the first on.
   * @default 100
   */
  maxOutputLines?: number | undefined;
  /**
   * Bytes of each output stream that the model reads.
   * @default 1,048,576, the most that a Result holds
   */
  maxOutputBytes?: number | undefined;
}

export const whole = (otherwise: string) =>
  z.number('must be a number').int('must be a whole number').positive(otherwise);

const { langchain: timeouts } = TIMEOUT_PROFILES;
const { langchain: output } = OUTPUT_PROFILES;

/** Schemas of the options that every policy has. They come first, so that their faults are named first. */
export const commonOptions = {
  maxOutputLines: whole('must be positive').default(output.maxLines),
  maxOutputBytes: whole('must be positive').default(output.maxBytes),
  commandTimeoutMs: whole('must be positive').default(timeouts.commandTimeoutMs),
  startupTimeoutMs: whole('must be positive').default(timeouts.startupTimeoutMs),
  terminationTimeoutMs: whole('must be positive').default(timeouts.terminationTimeoutMs),
};

const commonSchema = z.object(commonOptions);

/** Returns the part of a spec that the common options set. */
export function toCommonSpec(common: z.output<typeof commonSchema>): SessionSpec {
  const { maxOutputLines, maxOutputBytes, commandTimeoutMs, startupTimeoutMs, terminationTimeoutMs } = common;
  return {
    commandTimeoutMs,
    startupTimeoutMs,
    terminationTimeoutMs,
    output: { maxLines: maxOutputLines, maxBytes: maxOutputBytes, keep: output.keep },
  };
}

/** Spec of a middleware without a policy: the bounds of LangChain, in the sandbox that is the fleet's default. */
export const DEFAULT_SPEC: SessionSpec = toCommonSpec(commonSchema.parse({}));
