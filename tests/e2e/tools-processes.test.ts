import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { until } from '../support/until.ts';

const SLOTS = 4;

let stack: TestFleet;
let directory: string;
let redis: Redis;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tools-'));
  stack = await startFleet({
    env: { SHELLFLEET_TOOLS: toolModules('everyday', 'hostile'), SHELLFLEET_TOOL_SLOTS: String(SLOTS) },
  });
  redis = new Redis(stack.redisUrl);
});
afterAll(async () => {
  redis?.disconnect();
  await stack?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function readOrEmpty(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}

/** Returns whether a process runs. A zombie does not count. */
async function runs(pid: number): Promise<boolean> {
  const stat = await readOrEmpty(`/proc/${pid}/stat`);
  return stat !== '' && !/\) [ZX] /.test(stat);
}

describe('the time of a call', () => {
  // S4-10, S4-15
  test.each(['loops', 'ignoresTerm'])('ends %s at the timeout, however it treats the signal', async (name) => {
    expect(await stack.fleet.tools.call(name, {}, { timeoutMs: 700 })).toEqual({
      callId: expect.any(String),
      hostId: 'h1',
      ok: false,
      error: { code: 'timeout', message: 'Shellfleet: tool exceeded 700 ms', context: { timeoutMs: 700 } },
    });
  });

  // S4-15
  test('aborts the signal of the tool first, and leaves it a second', async () => {
    const path = join(directory, 'hears');
    expect(await stack.fleet.tools.call('hears', { path }, { timeoutMs: 6_000 })).toMatchObject({
      error: { code: 'timeout' },
    });
    expect(await readOrEmpty(path)).toBe('heard');
  });

  test('can be shortened by the caller, but not extended beyond the tool’s limit', async () => {
    expect(await stack.fleet.tools.call('quick', {}, { timeoutMs: 600_000 })).toMatchObject({
      error: { message: 'Shellfleet: tool exceeded 1000 ms' },
    });
  });

  // S4-16
  test('leaves the worker free to do other work', async () => {
    const loops = stack.fleet.tools.call('loops', {}, { timeoutMs: 4_000 });
    let ended = false;
    void loops.then(() => {
      ended = true;
    });
    expect(await stack.fleet.tools.call('add', { a: 2, b: 2 })).toMatchObject({ ok: true });
    expect(ended).toBe(false);
    await loops;
  });
});

describe('the processes of a call', () => {
  // S4-18
  test.each([
    ['times out', 60_000, { timeoutMs: 6_000 }],
    ['succeeds', 0, {}],
  ])('end with it when it %s, also those that left its group', async (_how, waitMs, options) => {
    const path = join(directory, `pids-${waitMs}`);
    const result = await stack.fleet.tools.call('spawns', { path, waitMs }, options);
    expect(result.ok).toBe(waitMs === 0);
    const pids = JSON.parse(await readOrEmpty(path)) as number[];
    expect(pids).toHaveLength(2);
    await until(
      () => Promise.all(pids.map(runs)),
      (running) => !running.includes(true),
      5_000,
    );
  });

  // S4-01
  test.each(['fillsHeap', 'fillsBuffers'])(
    'end at the memory limit for %s, which the caller’s error reports',
    async (name) => {
      expect(await stack.fleet.tools.call(name)).toMatchObject({
        ok: false,
        error: { code: 'memory', message: expect.stringContaining('tool ran out of memory') },
      });
      expect(await stack.fleet.tools.call('add', { a: 1, b: 1 })).toMatchObject({ ok: true });
    },
  );
});

// S4-22
describe('a caller', () => {
  test('ends the process of a call with its signal, whose reason the call rejects with', async () => {
    const path = join(directory, 'cancelled');
    const abort = new AbortController();
    const calling = stack.fleet.tools.call('hears', { path }, { signal: abort.signal });
    await until(
      () => readOrEmpty(path),
      (text) => text === 'started',
    );
    abort.abort(new Error('enough'));
    await expect(calling).rejects.toThrow('enough');
    expect(
      await until(
        () => readOrEmpty(path),
        // The file is empty for a moment while it is rewritten.
        (text) => text !== 'started' && text !== '',
      ),
    ).toBe('heard');
  });

  test('keeps a waiting call from ever beginning with its signal', async () => {
    const path = join(directory, 'waits');
    const blockers = await takeEverySlot();
    const abort = new AbortController();
    const calling = stack.fleet.tools.call('mark', { path, id: 'never' }, { signal: abort.signal });
    const watched = expect(calling).rejects.toMatchObject({ name: 'AbortError' });
    await until(waitingCalls, (count) => count === 1);
    abort.abort();
    await watched;
    await blockers.free();
    expect(await stack.fleet.tools.call('mark', { path, id: 'after' })).toMatchObject({ ok: true });
    expect(await readOrEmpty(path)).toBe('begin after\nend after\n');
  });

  test('gets an error result when a start deadline passes, and the call never begins', async () => {
    const path = join(directory, 'deadline');
    const blockers = await takeEverySlot();
    const late = stack.fleet.tools.call('mark', { path, id: 'late' }, { startDeadlineMs: 500 });
    expect(await late).toEqual({
      callId: expect.any(String),
      hostId: null,
      ok: false,
      error: { code: 'not-started', message: "Shellfleet: tool 'mark' did not start within 500 ms" },
    });
    await blockers.free();
    const after = { path, id: 'after' };
    expect(await stack.fleet.tools.call('mark', after, { startDeadlineMs: 60_000 })).toMatchObject({ ok: true });
    expect(await readOrEmpty(path)).toBe('begin after\nend after\n');
  });
});

/** Returns the number of calls of `mark` that have not begun. */
async function waitingCalls(): Promise<number> {
  return redis.llen(`${stack.keyspace}:{tools}:tool-mark@default:wait`);
}

/** Starts calls until no slot is free. */
async function takeEverySlot(): Promise<{ free(): Promise<void> }> {
  const abort = new AbortController();
  const paths = Array.from({ length: SLOTS }, (_, index) => join(directory, `slot-${index}`));
  await Promise.all(paths.map((path) => rm(path, { force: true })));
  const calls = paths.map((path) =>
    stack.fleet.tools.call('hears', { path }, { signal: abort.signal, timeoutMs: 120_000 }),
  );
  const ended = Promise.allSettled(calls);
  await until(
    () => Promise.all(paths.map(readOrEmpty)),
    (texts) => texts.every((text) => text === 'started'),
  );
  return {
    async free() {
      abort.abort();
      await ended;
    },
  };
}
