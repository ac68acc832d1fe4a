import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { workerNodeFlags } from '@shellfleet/setup';
import { describe, expect, test } from 'vitest';
import { workerProgram } from './worker-program.ts';

/** Keeps up to 600,000 objects alive, as a worker under load does, and prints the largest young generation. */
const PROGRAM = `
  const { getHeapSpaceStatistics } = await import('node:v8');
  const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size;
  let most = 0;
  let kept = [];
  for (let count = 0; count < 1_200_000; count += 1) {
    kept.push({ count, more: [count] });
    if (kept.length === 600_000) kept = [];
    if (count % 20_000 === 0) most = Math.max(most, size());
  }
  process.stdout.write(String(most));`;

const MOST_BYTES = 32 * 1024 * 1024;

describe('the program of the worker', () => {
  const flags = workerProgram('main').filter((argument) => argument.startsWith('--'));

  test('bounds the young generation of its heap under load', async () => {
    const largest = async (args: string[]) =>
      Number((await promisify(execFile)(process.execPath, [...args, '--input-type=module', '--eval', PROGRAM])).stdout);
    expect(await largest(flags)).toBeLessThanOrEqual(MOST_BYTES);
    expect(await largest(['--max-semi-space-size=64'])).toBeGreaterThan(MOST_BYTES);
  });

  test('has the flags that the image of the worker has', async () => {
    const recipe = await readFile(new URL('../../../../infra/images/worker/Dockerfile', import.meta.url), 'utf8');
    const entrypoint = /^ENTRYPOINT (\[.*?\])/ms.exec(recipe)?.[1]?.replaceAll('\\\n', '') ?? '[]';
    const expected = ['node', ...workerNodeFlags, '--conditions=@shellfleet/source', '--no-warnings'];
    expect(JSON.parse(entrypoint).slice(0, -1)).toEqual(expected);
  });
});
