import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: a full Redis (maxmemory) refuses new commands by name. Running commands end, and output that does not fit is
// cut and counted. Hosts stay alive and keep their leases; sessions close. When there is room again, all goes on
// without help.

let redis: OwnRedis;
let stack: TestFleet;
let inspect: FleetInspector;

beforeEach(async () => {
  redis = await startOwnRedis();
  ({ stack, inspect } = await startInspectedFleet({ redisUrl: redis.url }));
});
afterEach(() => endInspectedFleet(stack, inspect).finally(() => redis[Symbol.asyncDispose]()));

describe('a full Redis', () => {
  test('lets running commands end and starts none; with room again, waiting commands run', async () => {
    const ids = ['quiet', 'noisy', 'closing'] as const;
    const [quiet, noisy, closing] = await Promise.all(ids.map((id) => stack.fleet.session(id, { hostGraceMs: 0 })));
    if (quiet === undefined || noisy === undefined || closing === undefined) throw new Error('three sessions');
    await Promise.all([quiet, noisy, closing].map((session) => session.run('before=1')));
    const wait = 'until [ -e /tmp/go ]; do sleep 0.1; done';
    const [short, long] = [
      await quiet.submit(`echo begun; ${wait}; echo over`, { timeoutMs: 120_000 }),
      await noisy.submit(`echo begun; ${wait}; seq 1 200000`, { timeoutMs: 120_000 }),
    ];
    const stopped = await closing.submit('sleep 600');
    const next = await quiet.submit('echo next $before');
    await Promise.all([inspect.untilOutput('quiet'), inspect.untilOutput('noisy')]);
    const containers = await Promise.all([inspect.container('quiet'), inspect.container('noisy')]);

    await redis.redis.config('SET', 'maxmemory', '1');
    await expect(quiet.submit('echo refused')).rejects.toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      retryable: true,
      message: expect.stringContaining('Redis is full'),
    });
    await Promise.all(containers.map((container) => touch(container)));
    expect(await short.result()).toMatchObject({ outcome: 'success', stdout: 'begun\nover\n' });
    const cut = await long.result();
    expect(cut).toMatchObject({ outcome: 'success', exitCode: 0 });
    let [shown, omitted] = [0, 0];
    for await (const { data, omittedBytes = 0 } of long.output()) {
      shown += data.byteLength;
      omitted += omittedBytes;
    }
    expect(shown + omitted).toBe(cut.totals.stdoutBytes);
    expect(omitted).toBeGreaterThan(0);
    expect(await next.result()).toMatchObject({ outcome: 'success', stdout: 'next 1\n' });
    expect(await stopped.cancel()).toBe(true);
    expect((await stopped.result()).outcome).toBe('cancellation');
    await closing.close();
    expect(await stack.fleet.hosts()).toMatchObject([{ state: 'up' }]);

    await redis.redis.config('SET', 'maxmemory', '0');
    expect(await quiet.run('echo again $before')).toMatchObject({
      stdout: 'again 1\n',
      shell: { state: 'kept', epoch: 1 },
    });
    await until(
      async () => (await closing.info())?.state,
      (state) => state === 'closed',
    );
    expect((await Promise.all(ids.map((id) => inspect.broken(id)))).flat()).toEqual([]);
  });
});

async function touch(container: Awaited<ReturnType<FleetInspector['container']>>): Promise<void> {
  const run = await container.exec({ Cmd: ['touch', '/tmp/go'] });
  await run.start({ Detach: true });
}
