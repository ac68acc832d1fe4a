import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ToolResult } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startOwnRedis } from '../support/own-redis.ts';
import { startFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { until } from '../support/until.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tools-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const env = { SHELLFLEET_TOOLS: toolModules('everyday', 'hostile') };

async function readMarks(path: string): Promise<string[]> {
  return (await readFile(path, 'utf8').catch(() => '')).split('\n').filter(Boolean);
}

describe('many calls of a tool', () => {
  test('are all answered once when there are 120 at once', { timeout: 180_000 }, async () => {
    await using stack = await startFleet({ workers: 2, env });
    const path = join(directory, 'many');
    const ids = Array.from({ length: 120 }, (_, index) => `c${index}`);
    const results = await Promise.all(ids.map((id) => stack.fleet.tools.call('mark', { path, id })));
    expect(results.map((result) => result.ok && result.output)).toEqual(ids);
    expect(new Set(results.map(({ callId }) => callId)).size).toBe(120);
    const marks = await readMarks(path);
    expect(marks.sort()).toEqual(ids.flatMap((id) => [`begin ${id}`, `end ${id}`]).sort());
  });
});

// The tests run at the same time, because they mostly wait. Each has a fleet of its own.
describe.concurrent('calls of tools', { timeout: 120_000 }, () => {
  test('are lost if their worker is killed while they run; waiting calls run once', async ({ expect }) => {
    await using stack = await startFleet({ env: { ...env, SHELLFLEET_TOOL_SLOTS: '2' } });
    const path = join(directory, 'killed');
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const calls = ids.map((id) => stack.fleet.tools.call('mark', { path, id, waitMs: 3_000 }));
    await until(
      () => readMarks(path),
      (marks) => marks.length === 2,
    );
    const begun = (await readMarks(path)).map((mark) => mark.split(' ')[1]);
    const killedAt = performance.now();
    await stack.workers[0]?.kill();
    const toldAfterMs: number[] = [];
    const results = Promise.all(
      calls.map(async (calling) => {
        const result = await calling;
        if (!result.ok) toldAfterMs.push(performance.now() - killedAt);
        return result;
      }),
    );
    await until(
      () => toldAfterMs.length,
      (told) => told === 2,
    );
    expect(Math.max(...toldAfterMs)).toBeLessThan(12_000);
    // The process of a call dies with its worker.
    expect(await readMarks(path)).toHaveLength(2);
    await stack.workers[0]?.start();
    const outcome = (result: ToolResult) => (result.ok ? result.output : result.error.code);
    expect((await results).map(outcome)).toEqual(ids.map((id) => (begun.includes(id) ? 'lost' : id)));
    const expected = ids.flatMap((id) => (begun.includes(id) ? [`begin ${id}`] : [`begin ${id}`, `end ${id}`]));
    expect((await readMarks(path)).sort()).toEqual(expected.sort());
  });

  // S4-18
  test('have their leftover processes ended when the worker of their host starts again', async ({ expect }) => {
    await using stack = await startFleet({ env });
    const path = join(directory, 'orphans');
    const calling = stack.fleet.tools.call('spawns', { path, waitMs: 60_000 });
    const pids = await until(
      async () => (await readMarks(path)).flatMap((line) => JSON.parse(line) as number[]),
      (list) => list.length === 2,
    );
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    const states = () => Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => 'gone) Z ')));
    await until(states, (list) => list.every((stat) => /\) [ZX] /.test(stat)));
    expect(await calling).toEqual({
      callId: expect.any(String),
      hostId: 'h1',
      ok: false,
      error: {
        code: 'lost',
        message: 'Shellfleet: host h1 was lost while the tool ran; whether it took effect is not known',
      },
    });
  });

  test('end before a stopping worker ends, and that worker takes no further call', async ({ expect }) => {
    await using stack = await startFleet({ env: { ...env, SHELLFLEET_TOOL_SLOTS: '1' } });
    const path = join(directory, 'stopped');
    const first = stack.fleet.tools.call('mark', { path, id: 'first', waitMs: 2_000 });
    await until(
      () => readMarks(path),
      (marks) => marks.length === 1,
    );
    const second = stack.fleet.tools.call('mark', { path, id: 'second' });
    await stack.workers[0]?.stop('SIGTERM');
    expect(await first).toMatchObject({ ok: true, output: 'first' });
    expect(await readMarks(path)).toEqual(['begin first', 'end first']);
    await stack.workers[0]?.start();
    expect(await second).toMatchObject({ ok: true, output: 'second' });
  });

  test('go on when their caller is gone, and are counted once', async ({ expect }) => {
    await using stack = await startFleet({ env });
    const path = join(directory, 'gone');
    const other = await stack.connect();
    const calling = other.tools.call('mark', { path, id: 'x', waitMs: 1_000 });
    const refused = expect(calling).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    await until(
      () => readMarks(path),
      (marks) => marks.length === 1,
    );
    await other.close();
    await refused;
    await until(
      () => readMarks(path),
      (marks) => marks.length === 2,
    );
    expect(await readMarks(path)).toEqual(['begin x', 'end x']);
  });

  test('store their result when Redis is back after an outage', async ({ expect }) => {
    await using own = await startOwnRedis();
    await using stack = await startFleet({ env, redisUrl: own.url });
    const path = join(directory, 'away');
    const calling = stack.fleet.tools.call('mark', { path, id: 'x', waitMs: 1_000 });
    await until(
      () => readMarks(path),
      (marks) => marks.length === 1,
    );
    own.freeze();
    await until(
      () => readMarks(path),
      (marks) => marks.length === 2,
    );
    await expect(stack.fleet.tools.call('echo', {})).rejects.toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      retryable: true,
    });
    own.thaw();
    expect(await calling).toMatchObject({ ok: true, output: 'x' });
    expect(await readMarks(path)).toEqual(['begin x', 'end x']);
  });

  test('are lost, and do not run again, when Redis has forgotten them', async ({ expect }) => {
    await using own = await startOwnRedis();
    await using stack = await startFleet({ env: { ...env, SHELLFLEET_TOOL_SLOTS: '1' }, redisUrl: own.url });
    const path = join(directory, 'forgotten');
    const calls = ['runs', 'waits'].map((id) => stack.fleet.tools.call('mark', { path, id, waitMs: 12_000 }));
    await until(
      () => readMarks(path),
      (marks) => marks.length === 1,
    );
    await own.redis.flushall();
    const message = 'Shellfleet: Redis lost the call; whether it ran is not known';
    for (const calling of calls) expect(await calling).toMatchObject({ ok: false, error: { code: 'lost', message } });
    expect(await stack.fleet.tools.call('mark', { path, id: 'after' })).toMatchObject({ ok: true });
    expect(await readMarks(path)).toEqual(['begin runs', 'end runs', 'begin after', 'end after']);
  });

  test('do not run again on their host when Redis returns in an older state', async ({ expect }) => {
    await using own = await startOwnRedis();
    await using stack = await startFleet({ env, redisUrl: own.url });
    const path = join(directory, 'came-back');
    const toolKeys = async () => (await own.redis.keys('*{tools}*')).filter((key) => !key.includes(':known'));
    stack.workers[0]?.signal('SIGSTOP');
    const calling = stack.fleet.tools.call('mark', { path, id: 'once' });
    const waiting = await until(
      async () => (await toolKeys()).filter((key) => key.includes('call-')),
      (keys) => keys.length > 0,
    );
    const kept = await Promise.all(
      (await toolKeys()).map(async (key) => [key, (await own.redis.dumpBuffer(key)) ?? Buffer.alloc(0)] as const),
    );
    stack.workers[0]?.signal('SIGCONT');
    expect(await calling).toMatchObject({ ok: true, output: 'once' });
    await own.redis.del(...(await toolKeys()));
    for (const [key, value] of kept) await own.redis.restore(key, 0, value, 'REPLACE');
    await until(
      () => own.redis.exists(...waiting),
      (left) => left === 0,
    );
    // The failed call's place in the queue is free again.
    expect(await stack.fleet.tools.call('mark', { path, id: 'after' })).toMatchObject({ ok: true });
    expect(await readMarks(path)).toEqual(['begin once', 'end once', 'begin after', 'end after']);
  });
});
