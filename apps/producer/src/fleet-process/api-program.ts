import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isCheckout } from '@shellfleet/setup';

/** Returns Node's arguments for the HTTP API: its source in a checkout, else the installed package's. */
export function apiProgram(): string[] {
  const directory = dirname(createRequire(import.meta.url).resolve('@shellfleet/api/package.json'));
  if (!isCheckout) return ['--no-warnings', join(directory, 'dist/main.js')];
  return ['--no-warnings', '--conditions=@shellfleet/source', join(directory, 'src/main.ts')];
}
