import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test, vi } from 'vitest';
import { runPool } from './task-pool.ts';

async function* count(to: number): AsyncGenerator<number, undefined> {
  for (let task = 0; task < to; task++) yield task;
  return undefined;
}

const soon = () => new Promise((resolve) => setImmediate(resolve));

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

describe('pool of tasks', () => {
  // POOL-1
  test('keeps time and memory bounded for 100,000 tasks at concurrency 50 and 5,000', async () => {
    const run = async (concurrency: number) => {
      const long = Promise.withResolvers<number>();
      const heap: number[] = [];
      let done = 0;
      const from = performance.now();
      const start = (task: number) => (task === 0 ? long.promise : soon().then(() => task));
      for await (const _ of runPool(count(100_000), start, { concurrency })) {
        done++;
        if (done === 20_000 || done === 99_000) heap.push(heapBytes());
        if (done === 99_999) long.resolve(0);
      }
      const [early = 0, late = 0] = heap;
      return { done, tookMs: performance.now() - from, grownBytes: late - early };
    };
    await run(50);
    const few = await run(50);
    const many = await run(5_000);
    expect([few.done, many.done]).toEqual([100_000, 100_000]);
    // A race over all running tasks would take a hundred times as long at a hundred times the concurrency.
    expect(many.tookMs).toBeLessThan(10 * few.tookMs + 1_000);
    expect(Math.max(few.grownBytes, many.grownBytes)).toBeLessThan(8 << 20);
  });

  test('yields results as tasks end, without waiting for an earlier long task', async () => {
    const long = Promise.withResolvers<number>();
    const results: number[] = [];
    for await (const result of runPool(count(1_000), (task) => (task === 0 ? long.promise : soon().then(() => task)), {
      concurrency: 2,
    })) {
      results.push(result);
      if (results.length === 999) long.resolve(0);
    }
    expect(results).toEqual([...Array.from({ length: 999 }, (_, index) => index + 1), 0]);
  });

  // POOL-2
  test('stops reading tasks while its consumer is slow', async () => {
    let read = 0;
    async function* source() {
      for (; read < 100; read++) yield read;
    }
    const pool = runPool(source(), async (task) => task, { concurrency: 5 });
    await pool.next();
    for (let round = 0; round < 20; round++) await soon();
    expect(read).toBeLessThanOrEqual(6);
    await pool.return();
  });

  test('awaits running tasks and starts no other when its consumer stops', async () => {
    const started: number[] = [];
    const ends: (() => void)[] = [];
    const pool = runPool(
      count(10),
      (task) => {
        started.push(task);
        return new Promise<number>((resolve) => ends.push(() => resolve(task)));
      },
      { concurrency: 3 },
    );
    const first = pool.next();
    await vi.waitFor(() => expect(started).toEqual([0, 1, 2]));
    ends[0]?.();
    expect(await first).toEqual({ done: false, value: 0 });
    let returned = false;
    const returning = pool.return().then(() => {
      returned = true;
    });
    await soon();
    const startedBefore = started.length;
    expect(returned).toBe(false);
    for (const end of ends) end();
    await returning;
    expect(started).toHaveLength(startedBefore);
  });

  test('throws an error of the source after the running tasks have ended', async () => {
    let ended = 0;
    async function* source() {
      yield 1;
      yield 2;
      throw new Error('no more');
    }
    const run = async (): Promise<void> => {
      const start = async () => {
        for (let round = 0; round < 5; round++) await soon();
        ended++;
      };
      for await (const _ of runPool(source(), start, { concurrency: 5 }));
    };
    await expect(run()).rejects.toThrow('no more');
    expect(ended).toBe(2);
  });

  test('ends on abort even while its source yields nothing', async () => {
    const controller = new AbortController();
    async function* silent(): AsyncGenerator<number> {
      await new Promise(() => {});
    }
    const pool = runPool(silent(), async (task) => task, { concurrency: 1, signal: controller.signal });
    const next = pool.next();
    controller.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });
});
