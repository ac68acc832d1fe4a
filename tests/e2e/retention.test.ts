import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ workers: 2, env: { SHELLFLEET_RETENTION: '3s' } });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

test('a worker with another SHELLFLEET_RETENTION than a live host is refused, by the name of the setting', async () => {
  const second = stack.workers[1];
  await second?.stop('SIGTERM');
  await expect(second?.start({ SHELLFLEET_RETENTION: '4s' })).rejects.toThrow(
    'SHELLFLEET_RETENTION is 4000 ms here, but 3000 ms on host h1, which is up.',
  );
  await second?.start({ SHELLFLEET_RETENTION: '3s' });
});

test('of a closed session nothing is left after the retention, and its command is RESULT_EXPIRED', async () => {
  const session = await stack.fleet.session('kept');
  const { commandId } = await session.run('echo kept', { idempotencyKey: 'once' });
  await session.close();
  const redis = new Redis(stack.redisUrl);
  const left = () => redis.keys(`${stack.keyspace}:{default:kept}:*`);
  await until(left, (keys) => keys.length === 0, 60_000);
  redis.disconnect();
  await expect(stack.fleet.command(commandId)).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
});
