import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { startOwnRedis } from '../support/own-redis.ts';
import { startFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

const PASSWORD = 'hunter2-first-9f3c';
const NEXT_PASSWORD = 'hunter2-next-77aa';

describe('a worker', () => {
  test('logs that it has no Redis after a password change, and logs no password', async () => {
    await using own = await startOwnRedis();
    await own.redis.config('SET', 'requirepass', PASSWORD);
    const withPassword = (password: string) => own.url.replace('redis://', `redis://:${password}@`);
    await using stack = await startFleet({ redisUrl: withPassword(PASSWORD) });
    const [worker] = stack.workers;
    if (worker === undefined) throw new Error('no worker');
    await (await stack.fleet.session('s')).run('true');

    const admin = new Redis(withPassword(PASSWORD));
    admin.on('error', () => {});
    await admin.config('SET', 'requirepass', NEXT_PASSWORD);
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    // The worker has tried several heartbeats, reads of calls, fetches and rounds of upkeep.
    await until(
      () => worker.log.split('host.beat-failed').length,
      (failures) => failures > 3,
    );
    expect(worker.log).toMatch(/WRONGPASS|NOAUTH|there is no connection|broke before its answer|isn't writeable/);
    expect(worker.log).not.toContain(PASSWORD);
    expect(worker.log).not.toContain('"command":{');

    await admin.config('SET', 'requirepass', PASSWORD);
    admin.disconnect();
  });
});
