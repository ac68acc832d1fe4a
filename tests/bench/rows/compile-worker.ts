import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';

const run = promisify(execFile);

let compiled: Promise<string> | undefined;

/**
 * Compiles the worker, as it is published, and returns its program. A worker that ran from source would hold Node's
 * TypeScript compiler, which takes a sixth of its memory.
 */
export function compileWorker(): Promise<string> {
  compiled ??= compile();
  return compiled;
}

async function compile(): Promise<string> {
  const inCheckout = (directory: string) => ({ cwd: join(checkoutRoot, directory) });
  await run(join(checkoutRoot, 'node_modules/.bin/tsc'), ['-b', 'apps/worker'], inCheckout('.'));
  const copy = ['../../scripts/copy-into-dist.ts', 'src', '**/*.lua', 'dist'];
  for (const directory of ['libs/mailbox', 'libs/placement']) await run(process.execPath, copy, inCheckout(directory));
  await run(process.execPath, ['prebuild.ts'], inCheckout('libs/keeper'));
  return join(checkoutRoot, 'apps/worker/dist/main.js');
}
