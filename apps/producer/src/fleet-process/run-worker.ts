import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { readFleetFile } from '@shellfleet/client';
import { workerProgram } from './worker-program.ts';

/** Runs a worker in the foreground for the fleet of the environment or the state directory. Returns its exit code. */
export async function runWorkerProcess(given: NodeJS.ProcessEnv): Promise<number> {
  const file = given.SHELLFLEET_REDIS_URL ? undefined : await readFleetFile(given);
  const known = file && {
    SHELLFLEET_REDIS_URL: file.redisUrl,
    SHELLFLEET_NAMESPACE: file.namespace,
    SHELLFLEET_SEAL_KEY: file.sealKeys.join(','),
  };
  const child = spawn(process.execPath, workerProgram('main'), { env: { ...known, ...given }, stdio: 'inherit' });
  // A terminal sends Ctrl-C to this process and to the worker, so this process ignores SIGINT. It forwards other
  // signals.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
