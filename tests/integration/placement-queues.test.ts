import { sessionsQueue, tenantQueuesKey } from '@shellfleet/protocol';
import { describe, expect, test, vi } from 'vitest';
import {
  add,
  DOCKER,
  fetchNames,
  fleet,
  HOST,
  jobFor,
  own,
  redis,
  startHost,
  usePlacement,
} from '../support/open-placement.ts';
import { usageDuring } from '../support/redis-usage.ts';

// How hosts find the queues that have jobs, whatever clients write there.

usePlacement();

describe('the set of queues', () => {
  test('loses a queue without jobs, and keeps one with an active job', async () => {
    const host = await startHost('h1');
    await add('a', 's');
    await add('b', 's', { policy: 'host' });
    const jobs = await host.fetch({ most: 2 });
    expect(await host.fetch()).toEqual([]);
    expect(await redis.zcard(fleet.queues)).toBe(2);
    for (const job of jobs) if (job.tenant === 'a') await host.remove(job);
    await host.requeueStalled();
    expect(await redis.zrange(fleet.queues, '0', '-1')).toEqual([sessionsQueue(HOST, 'b')]);
    const ofTenants = await Promise.all(['a', 'b'].map((tenant) => redis.smembers(tenantQueuesKey(fleet, tenant))));
    expect(ofTenants).toEqual([[], [sessionsQueue(HOST, 'b')]]);
    await host.close();
  });

  test('has the queue of a job that was added while a host forgot the queue', async () => {
    const host = await startHost('h1');
    const lpush = redis.lpush.bind(redis) as (...args: unknown[]) => Promise<number>;
    const noting = vi.spyOn(redis, 'lpush').mockImplementationOnce(async (...args: unknown[]) => {
      const noted = await lpush(...args);
      expect(await host.fetch()).toEqual([]);
      await host.requeueStalled();
      expect(await redis.exists(fleet.queues, fleet.waitingQueues)).toBe(0);
      return noted as never;
    });
    await add('a', 's');
    noting.mockRestore();
    expect(await fetchNames(host)).toEqual(['a/s']);
    await host.close();
  });

  test.each<[string, (keys: string) => Promise<unknown>]>([
    ['a text for its waiting jobs', (keys) => redis.set(`${keys}wait`, 'x')],
    ['a text for its active jobs', (keys) => redis.multi().del(`${keys}active`).set(`${keys}active`, 'x').exec()],
    ['a text for a job', (keys) => redis.multi().set(`${keys}x`, 'x').rpush(`${keys}wait`, 'x').exec()],
    [
      'a text for the job of a session',
      (keys) => redis.multi().set(`${keys}s~junk~x`, 'x').rpush(`${keys}wait`, 's~junk~x').exec(),
    ],
    ['a priority without end', (keys) => redis.zadd(`${keys}prioritized`, '+inf', 's~junk~x')],
    [
      'a time that is no number',
      (keys) => redis.multi().hset(`${keys}s~junk~x`, 'timestamp', 'nan').rpush(`${keys}wait`, 's~junk~x').exec(),
    ],
  ])('serves other tenants although a tenant has written %s', async (_what, write) => {
    const host = await startHost('h1', {}, undefined, () => ({ junk: 1 }));
    for (const tenant of ['a', 'junk', 'z']) await add(tenant, 's');
    await write(`${fleet.sessionQueues}:${sessionsQueue(DOCKER, 'junk')}:`);
    const fetched = await fetchNames(host, 3);
    expect(fetched).toEqual(expect.arrayContaining(['a/s', 'z/s']));
    await redis.del(fleet.requeued);
    await host.requeueStalled();
    expect((await host.listOwn()).map(({ tenant }) => tenant)).toEqual(expect.arrayContaining(['a', 'z']));
    await host.close();
  });

  test('gets the queue of a job back when upkeep finds the job', async () => {
    const host = await startHost('h1');
    await add('a', 's');
    await redis.del(fleet.noted);
    expect(await host.fetch()).toEqual([]);
    expect(await host.has(jobFor('a', 's'))).toBe(true);
    expect(await fetchNames(host)).toEqual(['a/s']);
    await host.close();
  });

  test('gets back that jobs wait there within a search for lost locks', async () => {
    const host = await startHost('h1');
    await add('a', 's');
    expect(await redis.exists(fleet.waitingQueues)).toBe(0);
    await host.publishDemand();
    await redis.del(fleet.waitingQueues);
    expect(await host.fetch()).toEqual([]);
    await host.requeueStalled();
    expect(await fetchNames(host)).toEqual(['a/s']);
    await host.close();
  });

  test('costs a look nothing if nothing waits, and of other tenants little', async () => {
    const host = await startHost('h1');
    const callsOf = async (act: () => Promise<unknown>) => (await usageDuring([own.redis], act)).calls;
    const tenants = Array.from({ length: 300 }, (_, n) => `t${n}`);
    for (const tenant of tenants) await add(tenant, 's');
    expect(await fetchNames(host)).toHaveLength(tenants.length);
    const [read, look] = [await callsOf(async () => {}), await callsOf(() => host.fetch())];
    expect(look - read).toBeLessThan(10);
    await add('t0', 'next');
    expect((await callsOf(() => host.fetch())) - read).toBeLessThan(40);
    await host.close();
  });
});
