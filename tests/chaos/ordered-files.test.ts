import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';

// Promise: an ordered file operation whose worker is killed is continued by the next worker: a change is done once, a
// read is repeated, and both keep their place among the commands.

const KILLS = 3;
const FILE_BYTES = 12 << 20;

describe('an ordered file operation whose worker is killed', () => {
  let stack: TestFleet;
  let worker: TestWorker;
  let inspect: FleetInspector;
  beforeAll(async () => {
    ({ stack, worker, inspect } = await startInspectedFleet());
  });
  afterAll(() => endInspectedFleet(stack, inspect));

  /** Kills and restarts the worker a few times, at other moments of the operation each time. */
  async function killMeanwhile<T>(operation: Promise<T>): Promise<T> {
    for (let kill = 0; kill < KILLS; kill += 1) {
      await delay(40 + 35 * kill);
      await worker.kill();
      await worker.start();
    }
    return operation;
  }

  test('writes and reads the whole file', async () => {
    const session = await stack.fleet.session('whole');
    const data = randomBytes(FILE_BYTES);
    const digest = createHash('md5').update(data).digest('hex');
    await session.run('true');
    const write = session.files.write('/workspace/f', data, { ordered: true });
    await killMeanwhile(write);
    expect((await session.run('md5sum < f')).stdout).toBe(`${digest}  -\n`);
    const read = session.files.read('/workspace/f', { ordered: true });
    expect(Buffer.compare(await killMeanwhile(read), data)).toBe(0);
    expect(await inspect.broken('whole')).toEqual([]);
  }, 120_000);

  test('removes a large directory once, before the command that follows', async () => {
    const session = await stack.fleet.session('tree');
    await session.run('mkdir t && cd t && seq 1 60000 | xargs touch && cd ..');
    const removed = session.files.remove('/workspace/t', { ordered: true });
    const after = session.run('ls; mkdir t');
    await killMeanwhile(removed);
    expect((await after).stdout).toBe('');
    expect((await session.run('ls')).stdout).toBe('t\n');
    expect(await inspect.broken('tree')).toEqual([]);
  }, 120_000);
});
