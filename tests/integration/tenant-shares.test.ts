import { Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { runInSh } from '../support/run-in-sh.ts';
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

async function connect(tenant: string, { namespace, sealKey } = of): Promise<Fleet> {
  const fleet = await Fleet.connect({ redisUrl: own.url, namespace, sealKeys: [sealKey], tenant });
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

describe('sessions of three tenants that wait for one slot', () => {
  const SLOT_MS = 400;
  const script = `sleep ${SLOT_MS / 1_000}`;

  test('are told true places and waits, and keep their start deadlines', async () => {
    const shared = newFleet();
    const single = { redisUrl: own.url, ...shared, id: 'single', slots: 1, runScript: () => runInSh };
    const { worker } = await startFakeShellWorker(single);
    const [holds, a, b, c] = await Promise.all(['holds', 'a', 'b', 'c'].map((tenant) => connect(tenant, shared)));
    if (holds === undefined || a === undefined || b === undefined || c === undefined) throw new Error('No fleet.');
    // The estimate is made from the time for which such sessions have held the slot.
    for (let turn = 0; turn < 3; turn += 1) await holds.run(script);
    const holder = await holds.session('holder');
    await holder.run('true');

    const submit = async (fleet: Fleet, id: string, startDeadlineMs = 60_000) => {
      const session = await fleet.session(id);
      const command = await session.submit(script, { startDeadlineMs });
      const ended = command.result().finally(() => session.close());
      return { id, session, at: Date.now(), ended };
    };
    const waiting: Awaited<ReturnType<typeof submit>>[] = [];
    for (const [fleet, id] of [
      [a, 'a1'],
      [a, 'a2'],
      [a, 'a3'],
      [b, 'b1'],
      [b, 'b2'],
      [c, 'c1'],
    ] as const)
      waiting.push(await submit(fleet, id));
    const readAll = () => Promise.all(waiting.map(({ session }) => session.info()));
    const infos = await until(readAll, (all) => all.every(({ queueLength }) => queueLength === waiting.length));
    const byPlace = infos.toSorted((one, other) => (one.position ?? 0) - (other.position ?? 0));
    expect(byPlace.map(({ id, position }) => [id, position])).toEqual(
      ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'].map((id, index) => [id, index + 1]),
    );
    const late = await submit(b, 'late', 100);

    const readAt = Date.now();
    await holder.close();
    const results = await Promise.all(waiting.map(({ ended }) => ended));
    const startedAt = new Map(waiting.map(({ id, at }, index) => [id, at + (results[index]?.timings.queuedMs ?? 0)]));
    const started = [...startedAt].sort(([, one], [, other]) => one - other).map(([id]) => id);
    expect(started).toEqual(byPlace.map(({ id }) => id));
    for (const { id, etaMs = 0 } of byPlace) {
      const waitedMs = (startedAt.get(id) ?? 0) - readAt;
      // One slot time more or less, and half of the estimate on a busy machine.
      expect(Math.abs(waitedMs - etaMs), `${id} after ${waitedMs} ms, of ${etaMs}`).toBeLessThan(
        2 * SLOT_MS + etaMs / 2,
      );
    }
    expect(results.map(({ outcome }) => outcome)).toEqual(waiting.map(() => 'success'));
    expect(await late.ended).toMatchObject({ outcome: 'timeout', reason: 'not-started' });
    await worker.close('end', 1_000);
  });
});
