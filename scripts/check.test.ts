import { spawnSync } from 'node:child_process';
import { appendFile, glob, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from './steps.ts';
import { copyCheckout, toolEnvironment } from './testing/copy-checkout.ts';

// Proves that each check can fail, in a copy of a part of this checkout with a violation for each check.
// lint/lint.test.ts tests the import rules.

const violations = {
  types: [
    ['libs/policy/src/index.ts', "export const seeded: number = 'a text';\n"],
    ['libs/protocol/src/ids.test.ts', "export const seeded: number = 'a text';\n"],
  ],
  'python-types': [
    ['clients/python/src/shellfleet/errors.py', "seeded: int = 'a text'\n"],
    ['clients/python/tests/test_sse.py', 'def seeded(argument): ...\n'],
  ],
  format: [['libs/policy/src/seeded.ts', 'export const seeded = "a text"\n']],
  'c-source': [
    ['libs/keeper/src/seeded.c', 'int  seeded( void );\n'],
    ['libs/keeper/src/clock.h', '#include "entry.h"\n'],
    ['libs/keeper/src/shell.sh', `# ${'x'.repeat(120)}\n`],
  ],
  lint: [
    ['libs/policy/src/seeded.ts', 'export const unequal = (a: unknown): boolean => a == 1;\n'],
    ['libs/policy/src/clock.ts', 'export const now = (): number => Date.now();\n'],
    ['libs/policy/src/imports.ts', "import '@shellfleet/client';\n"],
  ],
  'dead-code': [
    ['libs/policy/src/unused.ts', "export const seeded = 'no file imports this';\n"],
    ['infra/setup/src/setup-error.ts', "export const seeded = 'no file imports this';\n"],
    ['libs/policy/src/limits.ts', "import 'bullmq';\n"],
    ['libs/concurrency/src/index.ts', "export * from './cycle.ts';\n"],
    ['libs/concurrency/src/cycle.ts', "export * from './index.ts';\n"],
  ],
} as const;

/** Directories that have violations or sources in C. The checks would read the others for half a minute. */
const kept = ['libs/policy', 'libs/protocol', 'libs/concurrency', 'libs/keeper', 'infra/setup', 'tests/rules-trial'];

let copy: string;

beforeAll(async () => {
  copy = await copyCheckout();
  for await (const path of glob('{apps,examples,infra,libs,tests}/*', { cwd: copy }))
    if (!kept.includes(path)) await rm(join(copy, path), { recursive: true, force: true });
  for (const [path, text] of Object.values(violations).flat()) await appendFile(join(copy, path), text);
}, 60_000);

afterAll(() => rm(copy, { recursive: true, force: true }));

describe.each(Object.entries(violations))('the check %s', (check, seeds) => {
  test('reports every violation', { timeout: 120_000 }, async () => {
    const run = spawnSync(await commandOf(check), { cwd: copy, encoding: 'utf8', shell: true, env: toolEnvironment() });
    const report = run.stdout + run.stderr;
    expect(seeds.map(([path]) => path).filter((path) => !report.includes(path))).toEqual([]);
    expect(run.status).not.toBe(0);
  });
});

/** Returns the command of a check, as Nx runs it for the whole checkout or for libs/policy. */
async function commandOf(check: string): Promise<string> {
  const [manifest, nx] = await Promise.all(
    ['package.json', 'nx.json'].map(async (name) => JSON.parse(await readFile(join(root, name), 'utf8'))),
  );
  const command: string = check === 'lint' ? nx.targetDefaults.lint.command : manifest.nx.targets[check].command;
  return command.replace('{projectRoot}', 'libs/policy');
}
