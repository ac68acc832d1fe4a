import { spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checks } from './check.ts';
import { root } from './steps.ts';

// A check that cannot fail protects nothing: each is fed one violation, in a copy of this checkout.

let copy: string;

beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), 'shellfleet-check-'));
  const leftOut = ['node_modules', '.git', 'dist', '.cache', '.nx', 'bench-results', 'build'];
  await cp(root, copy, { recursive: true, filter: (path) => path === root || !leftOut.includes(basename(path)) });
  await linkModules(join(root, 'node_modules'), join(copy, 'node_modules'));
}, 30_000);

afterAll(() => rm(copy, { recursive: true, force: true }));

// Links of workspaces are relative, so the copy's lead into the copy; everything else is shared.
async function linkModules(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const name of await readdir(from)) {
    if (name === '@shellfleet') await cp(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
    else if (name !== '.cache') await symlink(join(from, name), join(to, name));
  }
}

const unused = "export const seeded = 'nobody imports this';\n";

test.each<[keyof typeof checks, string, string]>([
  ['types', 'libs/policy/src/seeded.ts', "export const seeded: number = 'a text';\n"],
  ['types', 'libs/policy/src/seeded.test.ts', "export const seeded: number = 'a text';\n"],
  ['format', 'libs/policy/src/seeded.ts', 'export const seeded = "a text"\n'],
  ['lint', 'libs/policy/src/seeded.ts', 'export const seeded = (a: unknown): boolean => a == 1;\n'],
  ['lint', 'libs/policy/src/seeded.ts', "import 'bullmq';\n"],
  ['lint', 'libs/policy/src/seeded.ts', "import '@shellfleet/client';\n"],
  ['lint', 'libs/policy/src/seeded.ts', 'export const now = (): number => Date.now();\n'],
  ['dead code', 'libs/policy/src/seeded.ts', unused],
  ['dead code', 'infra/setup/src/setup-error.ts', unused],
])('%s finds what is wrong in %s: %s', { timeout: 60_000 }, async (name, path, text) => {
  const seeded = join(copy, path);
  const before = await readFile(seeded, 'utf8').catch(() => undefined);
  await mkdir(dirname(seeded), { recursive: true });
  await writeFile(seeded, (before ?? '') + text);
  const [file, ...args] = checks[name];
  const run = spawnSync(file!, args, { cwd: copy, encoding: 'utf8' });
  if (before === undefined) await rm(seeded);
  else await writeFile(seeded, before);
  expect(run.stdout + run.stderr).toContain(path);
  expect(run.status).not.toBe(0);
});
