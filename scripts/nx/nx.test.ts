import { spawnSync } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../steps.ts';
import { copyCheckout, toolEnvironment } from '../testing/copy-checkout.ts';
import { countTasks } from './run-tasks.ts';

// Runs Nx with the real configuration in a copy of this checkout.

let copy: string;

beforeAll(async () => {
  copy = await copyCheckout();
}, 60_000);

afterAll(() => rm(copy, { recursive: true, force: true }));

function nx(...args: string[]) {
  const env = toolEnvironment();
  return spawnSync('nx', args, { cwd: copy, encoding: 'utf8', env });
}

/** Every change affects the root project, whose checks read the whole checkout. */
const rootProject = 'shellfleet-repository';

describe('the affected projects', { timeout: 60_000 }, () => {
  const affectedBy = (file: string): string[] =>
    JSON.parse(nx('show', 'projects', '--affected', `--files=${file}`, '--json').stdout).toSorted();

  test('are the changed project and the projects that depend on it', async () => {
    expect(affectedBy('libs/policy/src/limits.ts')).toEqual([...(await dependents('@shellfleet/policy')), rootProject]);
    expect(affectedBy('tests/e2e/order.test.ts')).toEqual(['@shellfleet/tests', rootProject]);
  });

  test.each(['vitest.config.ts', 'package.json'])('are all projects for %s', async (file) => {
    const roots = ['protocol', 'concurrency', 'keeper', 'vendor'].map((name) => `@shellfleet/${name}`);
    const everything = await dependents(...roots);
    expect(affectedBy(file)).toEqual([...everything, rootProject]);
  });
});

describe('the unit task', { timeout: 120_000 }, () => {
  const testFile = 'libs/concurrency/src/call-order.test.ts';
  const unit = async () => {
    const { status } = nx('run', '@shellfleet/concurrency:unit', '--outputStyle=static');
    const statuses = JSON.parse(await readFile(join(copy, '.cache/nx-tasks.json'), 'utf8'));
    return [status, statuses['@shellfleet/concurrency:unit']];
  };

  test('uses its cache for an unchanged project, and never hides a failing test', async () => {
    const text = await readFile(join(copy, testFile), 'utf8');
    expect(await unit()).toEqual([0, 'success']);
    await rm(join(copy, '.cache/unit'), { recursive: true });
    expect(await unit()).toEqual([0, 'local-cache']);
    const cached = await countTasks(copy, { '@shellfleet/concurrency:unit': 'local-cache' }, () => {});
    expect(cached).toEqual({ passed: expect.toSatisfy((passed) => passed > 0), failed: 0 });

    await writeFile(join(copy, testFile), `${text}\ntest('seeded', () => expect(1).toBe(2));\n`);
    expect(await unit()).toEqual([1, 'failure']);
    // A failure is not cached: the next run executes the task again.
    expect(await unit()).toEqual([1, 'failure']);
    const failing = await countTasks(copy, { '@shellfleet/concurrency:unit': 'failure' }, () => {});
    expect(failing).toEqual({ passed: cached.passed, failed: 1 });

    await writeFile(join(copy, testFile), text);
    expect(await unit()).toEqual([0, 'local-cache']);
  });
});

type LockedPackage = {
  name?: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
};

/** Returns packages and all packages that depend on them, directly or not, according to the lock file. */
async function dependents(...names: string[]): Promise<string[]> {
  const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
    await readFile(join(root, 'package-lock.json'), 'utf8'),
  );
  const found = new Set(names);
  for (let size = 0; size < found.size; ) {
    size = found.size;
    for (const [path, entry] of Object.entries(lock.packages)) {
      if (path.startsWith('node_modules/') || entry.name === undefined || path === '') continue;
      const needs = Object.keys({ ...entry.dependencies, ...entry.devDependencies });
      if (needs.some((need) => found.has(need))) found.add(entry.name);
    }
  }
  return [...found].toSorted();
}
