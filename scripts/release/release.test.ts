import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { root } from '../steps.ts';
import { placeOf, toPublished } from './published-manifest.ts';
import { withoutDeadLinks } from './ship-docs.ts';

const run = promisify(execFile);

describe('a release', () => {
  test('raises all public packages, and their dependencies on each other, to one version', async () => {
    const copy = await mkdtemp(join(tmpdir(), 'sf-version-'));
    const { stdout } = await run('git', ['ls-files', 'package*.json', '*/package.json', '.changeset'], { cwd: root });
    const paths = stdout.trim().split('\n');
    for (const path of paths) {
      await mkdir(dirname(join(copy, path)), { recursive: true });
      await cp(join(root, path), join(copy, path));
    }
    await writeFile(join(copy, '.changeset/a-change.md'), '---\n"@shellfleet/keeper": minor\n---\n\nOne change.\n');
    await run(process.execPath, [join(root, 'node_modules/@changesets/cli/bin.js'), 'version'], { cwd: copy });

    const manifests = await Promise.all(
      paths
        .filter((path) => /^(libs|apps|infra)\//.test(path))
        .map(async (path) => JSON.parse(await readFile(join(copy, path), 'utf8'))),
    );
    const isPublic = (manifest: { private?: boolean }) => manifest.private !== true;
    const versions = manifests
      .filter(isPublic)
      .flatMap(({ name, version, dependencies = {} }) => [
        [name, version],
        ...Object.entries(dependencies).filter(([other]) => other.startsWith('@shellfleet/')),
      ]);
    expect(new Set(versions.map(([, version]) => version))).toEqual(new Set(['0.2.0']));
    expect(await readFile(join(copy, 'libs/keeper/CHANGELOG.md'), 'utf8')).toContain('One change.');
    await rm(copy, { recursive: true });
  });

  test('publishes a package.json with entry points and without fields of this repository', () => {
    const manifest = {
      name: 'a',
      version: '1.0.0',
      private: false,
      files: ['dist/**/*.js'],
      scripts: { assets: 'node copy.ts' },
      nx: {},
      exports: {
        '.': { '@shellfleet/source': './src/index.ts', types: './dist/index.d.ts', default: './dist/index.js' },
        './test-support': { '@shellfleet/source': './test-support/fuzz.ts' },
        './package.json': './package.json',
      },
      bin: { a: './bin/a' },
      dependencies: { b: '1.0.0' },
      devDependencies: { c: '1.0.0' },
      publishConfig: { access: 'public', bin: { a: './dist/main.js' } },
    };
    expect(toPublished(manifest)).toEqual({
      name: 'a',
      version: '1.0.0',
      files: ['dist/**/*.js'],
      exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' }, './package.json': './package.json' },
      bin: { a: './dist/main.js' },
      dependencies: { b: '1.0.0' },
      publishConfig: { access: 'public' },
    });
    expect(() => toPublished({ ...manifest, dependencies: { b: '*' } })).toThrow('a depends on any version of b');
  });

  test('takes homepage and repository from one setting, and omits them without it', () => {
    const repository = { type: 'git', url: 'git+https://git.example/shellfleet.git' };
    expect([placeOf({}, 'libs/client'), placeOf({ repository }, 'libs/client')]).toEqual([
      {},
      { repository: { ...repository, directory: 'libs/client' }, homepage: 'https://git.example/shellfleet#readme' },
    ]);
  });

  test('links shipped pages only to shipped pages and other sites', () => {
    const page =
      'See [the `cli`](cli.md#a), [why](adr/1.md), [it](#here), [there](https://a.example/b) and [that](../README.md).';
    expect(withoutDeadLinks(page, (target) => target === 'cli.md')).toBe(
      'See [the `cli`](cli.md#a), why, [it](#here), [there](https://a.example/b) and that.',
    );
  });
});
