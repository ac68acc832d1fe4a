import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isCheckout } from '@shellfleet/setup';

/** Node's arguments for a program of the worker's package: its source in a checkout, else the JavaScript of the installed package. */
export function workerProgram(name: 'main' | 'sandbox/examine-policy'): string[] {
  const folder = dirname(createRequire(import.meta.url).resolve('@shellfleet/worker/package.json'));
  if (!isCheckout) return ['--no-warnings', join(folder, 'dist', `${name}.js`)];
  return ['--conditions=@shellfleet/source', '--no-warnings', join(folder, 'src', `${name}.ts`)];
}
