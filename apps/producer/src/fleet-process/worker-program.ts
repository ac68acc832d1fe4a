import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isCheckout } from '@shellfleet/setup';

/**
 * Arguments of Node for programs of the worker (docs/tuning.md has the figures). The worker's image has the same.
 *
 * The young generation has two halves of 16 MiB from the start; by default it begins with 1 MiB and grows to 128 MiB,
 * which stay resident. The old generation is collected when it has grown by 40 %. Nothing is allocated there directly,
 * because nearly all that a command leaves is garbage within a millisecond.
 */
const NODE_ARGUMENTS = [
  '--max-semi-space-size=16',
  '--min-semi-space-size=16',
  '--heap-growing-percent=40',
  '--no-allocation-site-pretenuring',
  '--no-warnings',
];

/** Returns Node's arguments for a program of the worker: its source in a checkout, else the installed package's. */
export function workerProgram(name: 'main' | 'sandbox/examine-policy'): string[] {
  const directory = dirname(createRequire(import.meta.url).resolve('@shellfleet/worker/package.json'));
  if (!isCheckout) return [...NODE_ARGUMENTS, join(directory, 'dist', `${name}.js`)];
  return [...NODE_ARGUMENTS, '--conditions=@shellfleet/source', join(directory, 'src', `${name}.ts`)];
}
