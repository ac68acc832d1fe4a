import { isOn, readTracingChoice, type TracingChoice } from '@shellfleet/protocol';
import { VERSION } from './program-file.ts';

/** Settings of the command line itself. Flags and the client read other variables. */
export interface Config {
  version: string;
  /** Shows errors with their stack. SHELLFLEET_DEBUG; default: no. */
  debug: boolean;
  /** Replaces lines in place: stderr is a terminal, `CI` is unset and `TERM` is not `dumb`. */
  progress: boolean;
  /** Colours messages: stderr is a terminal, and `NO_COLOR` and `CI` are unset. */
  color: boolean;
  /** How the spans of a call are exported, why they are not, or undefined if nobody asks for them. */
  tracing: TracingChoice | string | undefined;
  env: NodeJS.ProcessEnv;
}

export function readCliConfig(env: NodeJS.ProcessEnv, terminal = process.stderr.isTTY === true): Config {
  return {
    version: VERSION,
    debug: isOn(env.SHELLFLEET_DEBUG),
    progress: terminal && !isOn(env.CI) && env.TERM !== 'dumb',
    color: terminal && !env.NO_COLOR && !isOn(env.CI),
    tracing: readTracingChoice(env),
    env,
  };
}
