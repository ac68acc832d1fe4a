import { Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

// What a real worker gives to tenants, with shells in memory.

const SLOTS = 8;
let own: OwnRedis;
let host: FakeShellWorker;
const fleets: Fleet[] = [];
const of = newFleet();

beforeAll(async () => {
  own = await startOwnRedis();
  host = await startFakeShellWorker({ redisUrl: own.url, ...of, id: 'h1', slots: SLOTS });
});
afterAll(async () => {
  await Promise.all(fleets.map((fleet) => fleet.close()));
  await host?.worker.close('end', 1_000);
  await own?.[Symbol.asyncDispose]();
});

async function connect(tenant: string): Promise<Fleet> {
  const fleet = await Fleet.connect({ redisUrl: own.url, namespace: of.namespace, sealKeys: [of.sealKey], tenant });
  fleets.push(fleet);
  return fleet;
}

describe('the slots of a host', () => {
  test('are not all taken by one tenant, so another one gets the last at once', async () => {
    const [many, few] = [await connect('many'), await connect('few')];
    const sessions = await Promise.all(Array.from({ length: SLOTS + 2 }, (_, n) => many.session(`s${n}`)));
    await Promise.all(sessions.map((session) => session.submit('true')));
    await until(
      () => many.hosts(),
      ([info]) => info?.free === 1,
    );
    expect((await few.run('true')).outcome).toBe('success');
    expect(host.sandboxes.made.filter(({ session }) => session?.tenant === 'many')).toHaveLength(SLOTS - 1);
    await Promise.all(sessions.map((session) => session.close()));
  });

  test('come back from idle sessions after the longest idle time of their tenant', async () => {
    const [thinks, other] = [await connect('thinks'), await connect('other')];
    const [idle, stays] = [await thinks.session('idle'), await other.session('idle')];
    await Promise.all([idle.run('true'), stays.run('true')]);
    await other.applyConfiguration({ tenants: [{ name: 'thinks', idleTimeoutMs: 50 }] });
    expect(
      (
        await until(
          () => idle.info(),
          ({ state }) => state === 'lost',
        )
      ).hostId,
    ).toBeNull();
    expect((await stays.info()).state).toBe('ready');
    expect((await idle.run('true')).shell.reason).toBe('it was idle for 50 ms');
  });
});
