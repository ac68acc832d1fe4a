import { runCli } from './cli/program.ts';
import { readCliConfig } from './config.ts';

/** Runs the command line. Resolves to the exit code. */
export function start(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return runCli(args, readCliConfig(env));
}
