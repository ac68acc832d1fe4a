import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ workers: 2, env: { SHELLFLEET_RETENTION: '3s' } });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

describe('the retention', () => {
  test('is refused, by its setting, when it differs from that of a live host', async () => {
    const second = stack.workers[1];
    await second?.stop('SIGTERM');
    await expect(second?.start({ SHELLFLEET_RETENTION: '4s' })).rejects.toThrow(
      'SHELLFLEET_RETENTION is 4000 ms here, but 3000 ms on host h1, which is up.',
    );
    await second?.start({ SHELLFLEET_RETENTION: '3s' });
  });

  test('leaves nothing of a closed session at its end, and reports RESULT_EXPIRED', async () => {
    const session = await stack.fleet.session('kept');
    const { commandId } = await session.run('echo kept', { idempotencyKey: 'once' });
    await session.close();
    const redis = new Redis(stack.redisUrl);
    const left = () => redis.keys(`${stack.keyspace}:{default:kept}:*`);
    await until(left, (keys) => keys.length === 0, 60_000);
    redis.disconnect();
    await expect(stack.fleet.command(commandId)).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
  });
});
