import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CheckoutCopy } from './checkout-copy.ts';
import { withoutTypes } from './code-mask.ts';
import type { Mutant } from './draw.ts';
import { languageOf, type Part } from './parts.ts';
import { runProgram } from './run-program.ts';

const run = promisify(execFile);

/**
 * What became of a mutant.
 * `invalid`: does not compile or parse, or compiles to the same code; another mutant replaces it.
 * `timeout`: the tests did not end in time, which counts as detected.
 */
type Verdict = 'killed' | 'timeout' | 'survived' | 'invalid';

export interface MutantCheck {
  verdict: Verdict;
  ms: number;
  /** The first test that failed. */
  by?: string;
}

/** Runs the part's tests on the mutant, for at most `timeoutMs` over all steps. */
export async function checkMutant(
  copy: CheckoutCopy,
  part: Part,
  mutant: Mutant,
  timeoutMs: number,
): Promise<MutantCheck> {
  const startedAt = performance.now();
  const original = languageOf(mutant.file) === 'c' ? await compiled(copy, mutant.file) : undefined;
  return copy.withMutant(mutant, async () => {
    const end = (verdict: Verdict, by?: string): MutantCheck => {
      return { verdict, ms: Math.round(performance.now() - startedAt), ...(by === undefined ? {} : { by }) };
    };
    const changed = await compiled(copy, mutant.file, mutant.operator).catch(() => undefined);
    if (changed === undefined || changed === original) return end('invalid');
    const testsAt = performance.now();
    for (const filters of part.tests) {
      const tests = await runTests(copy, filters, timeoutMs - (performance.now() - testsAt));
      if (tests.output.includes('Error compiling script')) return end('invalid');
      if (tests.status === 'timeout') return end('timeout');
      if (tests.status === 'failed') return end('killed', firstFailure(tests.output));
    }
    return end('survived');
  });
}

/** Runs the tests of a part on the unchanged copy. Throws with their output when one fails. */
export async function checkBaseline(copy: CheckoutCopy, part: Part, timeoutMs: number): Promise<number> {
  const startedAt = performance.now();
  for (const filters of part.tests) {
    const { status, output } = await runTests(copy, filters, timeoutMs);
    if (status !== 'passed') throw new Error(`The tests ${filters.join(' ')} without a mutant: ${status}\n${output}`);
  }
  return Math.round(performance.now() - startedAt);
}

async function runTests({ directory }: CheckoutCopy, filters: readonly string[], timeoutMs: number) {
  const temporary = await mkdtemp(join(tmpdir(), 'sf-mutant-'));
  // Some tests run programs as other users, with files below this directory.
  await chmod(temporary, 0o1777);
  const vitest = join(directory, '../../../node_modules/.bin/vitest');
  const args = ['run', '--bail=1', '--reporter=dot', '--no-color', ...filters];
  try {
    return await runProgram(vitest, args, { cwd: directory, timeoutMs, env: { ...process.env, TMPDIR: temporary } });
  } finally {
    await removeContainers(temporary);
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Removes the containers of killed tests, recognised by a mount below the tests' directory. */
async function removeContainers(directory: string): Promise<void> {
  const docker = async (...args: string[]): Promise<string> => (await run('docker', args)).stdout.trim();
  try {
    const ids = (await docker('ps', '-aq', '--filter', 'label=shellfleet.test')).split('\n').filter((id) => id !== '');
    for (const id of ids) {
      const binds = await docker('inspect', '--format', '{{.HostConfig.Binds}}', id);
      if (binds.includes(directory)) await docker('rm', '-f', id);
    }
  } catch {
    // Without an engine there are no containers.
  }
}

function firstFailure(output: string): string {
  return / FAIL {2}(.*)/.exec(output)?.[1]?.trim() ?? output.trim().split('\n').at(-1) ?? '';
}

/**
 * Throws if the file does not compile. Returns its object code if there is any, because a mutant with the same object
 * code is the same program. Types are checked for the operators that often break them. Only Redis compiles Lua, so
 * errors of a script are in the tests' output.
 */
async function compiled({ directory }: CheckoutCopy, file: string, operator?: string): Promise<string> {
  const path = join(directory, file);
  switch (languageOf(file)) {
    case 'typescript': {
      withoutTypes(await readFile(path, 'utf8'));
      if (operator === 'arguments' || operator === 'statement') {
        await run(join(directory, '../../../node_modules/.bin/tsc'), ['-p', 'tsconfig.json'], { cwd: directory });
      }
      return '';
    }
    case 'shell':
      await run('sh', ['-n', path]);
      return '';
    case 'lua':
      return '';
    case 'c': {
      const builds = join(directory, 'libs/keeper/build');
      const includes = (await readdir(builds).catch(() => [])).flatMap((name) => ['-I', join(builds, name)]);
      const object = join(directory, '.cache-object.o');
      await run('cc', ['-std=gnu11', '-Os', '-Wall', '-Wextra', ...includes, '-c', '-o', object, path]);
      return (await readFile(object)).toString('latin1');
    }
  }
}
