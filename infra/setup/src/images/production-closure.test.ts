import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findProductionClosure } from './production-closure.ts';

async function makeTree(manifests: Record<string, object>, links: Record<string, string> = {}): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'shellfleet-closure-'));
  onTestFinished(() => rm(root, { recursive: true }));
  for (const [path, manifest] of Object.entries(manifests)) {
    await mkdir(join(root, path), { recursive: true });
    await writeFile(join(root, path, 'package.json'), JSON.stringify(manifest));
  }
  for (const [path, target] of Object.entries(links)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await symlink(target, join(root, path));
  }
  return root;
}

describe('the closure of production dependencies', () => {
  test('follows dependencies through workspaces and nested packages, without those for development', async () => {
    const root = await makeTree(
      {
        'apps/worker': { dependencies: { '@s/lib': '*', a: '1' }, devDependencies: { tool: '1' } },
        'libs/lib': { dependencies: { b: '1' } },
        'node_modules/a': { dependencies: { b: '2' } },
        'node_modules/a/node_modules/b': {},
        'node_modules/b': { optionalDependencies: { elsewhere: '1' }, dependencies: { a: '1' } },
        'node_modules/tool': {},
      },
      { 'node_modules/@s/lib': '../../libs/lib' },
    );
    expect(await findProductionClosure(root, 'apps/worker')).toEqual({
      workspaces: ['apps/worker', 'libs/lib'],
      links: ['node_modules/@s/lib'],
      packages: ['node_modules/a', 'node_modules/a/node_modules/b', 'node_modules/b'],
    });
  });

  test('names the package that is not installed', async () => {
    const root = await makeTree({ 'apps/worker': { dependencies: { missing: '1' } } });
    await expect(findProductionClosure(root, 'apps/worker')).rejects.toThrow(
      'apps/worker needs missing, which is not installed',
    );
  });
});
