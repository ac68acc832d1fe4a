import type { Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setClientStage } from '../support/client-stage.ts';
import { countTimers } from '../support/count-timers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until, untilFound } from '../support/until.ts';

let own: OwnRedis;
beforeAll(async () => {
  own = await startOwnRedis();
});
afterAll(() => own[Symbol.asyncDispose]());

/** Returns the connections of this process's clients from the list of Redis. */
async function clientConnections(): Promise<string[]> {
  const list = (await own.redis.client('LIST')) as string;
  return list.split('\n').filter((line) => /name=shellfleet-(producer|feeds)/.test(line));
}

/** Counts the calls of Redis that `act` causes. */
async function callsDuring(act: () => Promise<unknown>): Promise<number> {
  const read = async () => Number(/total_commands_processed:(\d+)/.exec(await own.redis.info('stats'))?.[1]);
  const before = await read();
  await act();
  return (await read()) - before;
}

const untilClosed = () =>
  untilFound('no connection is left', async () => (await clientConnections()).length === 0 || undefined);

describe('the connections of clients to Redis', () => {
  // CONNECTION-1
  test('are at most five for 50 tenants in one process', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost({ slots: 50 });
    const names = Array.from({ length: 50 }, (_, index) => `tenant-${index}`);
    const fleets = await Promise.all(names.map((tenant) => stage.connect({ tenant })));
    const outputs = await Promise.all(
      fleets.map(async (fleet, index) => {
        const session = await fleet.session('s');
        const shown: string[] = [];
        const result = await session.run(`echo of ${names[index]}`, { onOutput: ({ text }) => shown.push(text) });
        return [result.stdout, shown.join('')];
      }),
    );
    expect(outputs).toEqual(names.map((name) => [`of ${name}\n`, `of ${name}\n`]));
    expect((await clientConnections()).length).toBeLessThanOrEqual(5);
  });

  // CONNECTION-1
  test('and the timers do not grow with 1,000 tenants that all read and drive', async () => {
    await using stage = await setClientStage(own);
    const first = await stage.connect({ tenant: 'first' });
    await (await first.session('s', undefined, { driven: true })).submit('true');
    using timers = countTimers();
    const names = Array.from({ length: 1_000 }, (_, index) => `tenant-${index}`);
    let fleets: Fleet[] = [];
    const calls = await callsDuring(async () => {
      fleets = await Promise.all(names.map((tenant) => stage.connect({ tenant })));
    });
    expect(calls).toBeLessThan(20);
    expect(await callsDuring(() => stage.connect({ tenant: 'one-more' }))).toBeLessThan(10);
    const ended = await Promise.all(
      fleets.map(async (fleet) => {
        const command = await (await fleet.session('s', undefined, { driven: true })).submit('true');
        const [result, output] = [command.result(), Array.fromAsync(command.output())];
        return () => Promise.allSettled([result, output]);
      }),
    );
    const channels = async () => ((await own.redis.pubsub('CHANNELS', `${stage.keyspace}:*`)) as string[]).length;
    await until(channels, (count) => count >= 2_000);
    // The timers of calls end with their replies. What stays is a few of each connection.
    await until(timers.running, (count) => count < 10);
    expect(await clientConnections()).toHaveLength(2);
    await Promise.all(fleets.map((fleet) => fleet.close()));
    await Promise.all(ended.map((settled) => settled()));
    await until(channels, (count) => count < 10);
    await until(timers.running, (count) => count < 10);
  });

  test('are shared by fleets of several namespaces, each with its own sessions and inbox', async () => {
    await using first = await setClientStage(own);
    await using second = await setClientStage(own);
    await Promise.all([first.startHost(), second.startHost()]);
    const inFirst = await (await first.connect()).session('s');
    expect((await inFirst.run('echo first')).stdout).toBe('first\n');
    const inSecond = await (await second.connect()).session('s');
    const startedAt = Date.now();
    expect((await inSecond.run('echo second')).stdout).toBe('second\n');
    expect(Date.now() - startedAt).toBeLessThan(2_500); // without a notice the client would look for the Result after 3 s
    expect((await inFirst.run('echo first')).stdout).toBe('first\n');
    expect((await clientConnections()).length).toBeLessThanOrEqual(2);
  });

  // VIEW-1, VIEW-2
  test('stay open for other views, and their waits, when one view closes', async () => {
    await using stage = await setClientStage(own);
    await using elsewhere = await setClientStage(own);
    const [closing, sameTenant, otherTenant] = await Promise.all([
      stage.connect(),
      stage.connect(),
      stage.connect({ tenant: 'other' }),
    ]);
    const session = await closing.session('s');
    const command = await session.submit('echo shared');
    const same = await sameTenant.command(command.id);
    const other = await (await otherTenant.session('s')).submit('echo other');
    const far = await (await (await elsewhere.connect()).session('s')).submit('echo far');
    const waiting = [same, other, far].map((one) => one.result());
    const reading = Array.fromAsync(same.output());
    const rejected = expect(command.result()).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });

    await closing.close();
    await rejected;
    await expect(session.submit('true')).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    await expect(closing.hosts()).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    await Promise.all([stage.startHost(), elsewhere.startHost()]);
    expect((await Promise.all(waiting)).map(({ stdout }) => stdout)).toEqual(['shared\n', 'other\n', 'far\n']);
    expect((await reading).map(({ text }) => text).join('')).toBe('shared\n');
  });

  // CONNECTION-2
  test('close with the last view, and a later connect opens new ones', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const [first, second] = await Promise.all([stage.connect(), stage.connect({ tenant: 'other' })]);
    await (await first.session('s')).run('true');
    await first.close();
    await first.close();
    expect((await clientConnections()).length).toBeGreaterThan(0);
    await second.close();
    await untilClosed();
    const third = await stage.connect();
    expect((await (await third.session('s')).run('echo again')).stdout).toBe('again\n');
  });

  test('are separate for another user of the same Redis', async () => {
    await using stage = await setClientStage(own);
    await own.redis.acl('SETUSER', 'second', 'on', '>hush', '~*', '&*', '+@all');
    await stage.connect();
    expect(await clientConnections()).toHaveLength(1);
    await stage.connect({ redisUrl: own.url.replace('redis://', 'redis://second:hush@') });
    await stage.connect({ redisUrl: `${own.url}/` });
    expect((await clientConnections()).map((line) => /user=(\S+)/.exec(line)?.[1]).sort()).toEqual([
      'default',
      'second',
    ]);
  });

  test('survive a refused connect, and serve later ones', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const fleet = await stage.connect();
    await own.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const refused = stage.connect().catch((error: unknown) => error);
    expect(await refused).toMatchObject({ code: 'REDIS_UNSUITABLE' });
    await own.redis.config('SET', 'maxmemory-policy', 'noeviction');
    expect((await (await fleet.session('s')).run('echo on')).stdout).toBe('on\n');
    expect((await (await (await stage.connect()).session('s')).run('echo on')).stdout).toBe('on\n');
  });
});
