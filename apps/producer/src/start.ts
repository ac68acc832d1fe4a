import { runCli } from './cli/program.ts';
import { readCliConfig } from './config.ts';

/** Runs the command line. Resolves to the exit code. */
export async function start(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const config = readCliConfig(env);
  if (config.tracing === undefined) return runCli(args, config);
  const { runTraced } = await import('./run-traced.ts');
  return runTraced(args, config, config.tracing);
}
