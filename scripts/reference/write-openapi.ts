import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeApi } from '../../apps/api/src/openapi/describe-api.ts';
import { ROUTES } from '../../apps/api/src/routes/index.ts';
import { root } from '../steps.ts';
import type { SourceFile } from './write-docstrings.ts';

/** Returns the document that the HTTP API serves at `/openapi.json`. */
export async function writeOpenApi(): Promise<SourceFile> {
  const manifest = await readFile(join(root, 'apps/api/package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string };
  return { path: 'docs/openapi.json', text: `${JSON.stringify(describeApi(ROUTES, version), undefined, 2)}\n` };
}
