import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isCheckout } from '@shellfleet/setup';

/**
 * Arguments of Node for every program of the worker's package. The first limits the young generation of the heap to two
 * halves of 16 MiB, which a worker fills in a second. Without a limit it grows to 128 MiB, all of which stays resident
 * (docs/tuning.md). The image of the worker has the same (infra/images/worker).
 */
const NODE_ARGUMENTS = ['--max-semi-space-size=16', '--no-warnings'];

/**
 * Returns Node's arguments for a program of the worker: its source in a checkout, else that of the installed package.
 */
export function workerProgram(name: 'main' | 'sandbox/examine-policy'): string[] {
  const folder = dirname(createRequire(import.meta.url).resolve('@shellfleet/worker/package.json'));
  if (!isCheckout) return [...NODE_ARGUMENTS, join(folder, 'dist', `${name}.js`)];
  return [...NODE_ARGUMENTS, '--conditions=@shellfleet/source', join(folder, 'src', `${name}.ts`)];
}
