import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isCheckout, workerNodeFlags } from '@shellfleet/setup';

/** Arguments of Node for programs of the worker. */
const NODE_ARGUMENTS = [...workerNodeFlags, '--no-warnings'];

/** Returns Node's arguments for a program of the worker: its source in a checkout, else the installed package's. */
export function workerProgram(name: 'main' | 'sandbox/examine-policy'): string[] {
  const directory = dirname(createRequire(import.meta.url).resolve('@shellfleet/worker/package.json'));
  if (!isCheckout) return [...NODE_ARGUMENTS, join(directory, 'dist', `${name}.js`)];
  return [...NODE_ARGUMENTS, '--conditions=@shellfleet/source', join(directory, 'src', `${name}.ts`)];
}
