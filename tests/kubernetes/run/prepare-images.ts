import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import type { KubernetesPlan } from './plan.ts';

const run = promisify(execFile);
const MOST_BYTES = 2 ** 20;

/**
 * Returns the values of the chart that name the images: of the directory of `npm run images -- --out`, or after that
 * command has pushed them to the registry. With neither, it names those that it would write, which the nodes must have.
 */
export async function prepareImages({
  registry,
  images,
}: Pick<KubernetesPlan, 'registry' | 'images'>): Promise<string> {
  if (images !== undefined) return readFile(join(images, 'values.yaml'), 'utf8');
  const script = join(checkoutRoot, 'scripts/images.ts');
  const where = registry === undefined ? ['--names'] : ['--registry', registry];
  const flags = ['--conditions=@shellfleet/source', '--no-warnings'];
  const running = run(process.execPath, [...flags, script, ...where], { maxBuffer: MOST_BYTES });
  running.child.stderr?.pipe(process.stderr);
  return (await running).stdout;
}
