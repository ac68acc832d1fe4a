import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isCheckout } from '@shellfleet/setup';

/**
 * Arguments of Node for programs of the worker. The young generation of the heap gets two halves of 16 MiB; by default
 * it grows to 128 MiB, which stay resident (docs/tuning.md). The worker's image has the same.
 */
const NODE_ARGUMENTS = ['--max-semi-space-size=16', '--no-warnings'];

/** Returns Node's arguments for a program of the worker: its source in a checkout, else the installed package's. */
export function workerProgram(name: 'main' | 'sandbox/examine-policy'): string[] {
  const directory = dirname(createRequire(import.meta.url).resolve('@shellfleet/worker/package.json'));
  if (!isCheckout) return [...NODE_ARGUMENTS, join(directory, 'dist', `${name}.js`)];
  return [...NODE_ARGUMENTS, '--conditions=@shellfleet/source', join(directory, 'src', `${name}.ts`)];
}
