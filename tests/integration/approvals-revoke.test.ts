import { availableParallelism, loadavg } from 'node:os';
import { type Approval, Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until, untilFound } from '../support/until.ts';

// Measures how long a revocation takes, on idle hosts and while 40 sessions start 400 commands on the approval. Workers
// and client share one process, so a revocation waits for its turn there. The figures of docs/approvals.md:
// SHELLFLEET_FIGURES=full npx vitest run --project figures tests/integration/approvals-revoke.test.ts

const FULL = process.env.SHELLFLEET_FIGURES === 'full';
const ROUNDS = FULL ? 20 : 5;
const SESSIONS = 40;
/**
 * Returns the limit in milliseconds. Without the confirmations of the hosts a revocation takes two seconds under any
 * load.
 */
const boundMs = () => (FULL || loadavg()[0]! < availableParallelism() ? 100 : 1_900);

let own: OwnRedis;
let fleet: Fleet;
let workers: FakeShellWorker[] = [];

beforeAll(async () => {
  own = await startOwnRedis();
  const of = newFleet();
  const redisUrl = own.url;
  workers = await Promise.all(['h1', 'h2'].map((id) => startFakeShellWorker({ redisUrl, ...of, id, slots: SESSIONS })));
  fleet = await Fleet.connect({ redisUrl, namespace: of.namespace, sealKeys: [of.sealKey] });
});
afterAll(async () => {
  await fleet?.close();
  await Promise.all(workers.map(({ worker }) => worker.close('end', 2_000)));
  await own?.[Symbol.asyncDispose]();
});

const begun = () => workers.reduce((sum, worker) => sum + worker.begun(), 0);

async function timeOfRevocation(id: string): Promise<number> {
  const from = performance.now();
  await fleet.approvals.revoke(id);
  return Math.round(performance.now() - from);
}

/** Prints the median of `times`, and returns it. */
function checkTimes(what: string, times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)]!;
  console.info(`figure: revocation, ${what}: median ${median} ms, longest ${sorted.at(-1)} ms of ${times.length}`);
  return median;
}

describe('a revocation', () => {
  test('resolves within 100 ms on idle hosts', async () => {
    const session = await fleet.session('idle');
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const command = await session.submit('ask now and then');
      const [question] = await until(
        () => fleet.approvals.list(),
        (list) => list.length === 1,
      );
      await fleet.approvals.approve(question!.id, { scope: 'prefix' });
      await command.result();
      times.push(await timeOfRevocation(question!.id));
    }
    expect(checkTimes('idle hosts', times)).toBeLessThan(boundMs());
  });

  test('resolves within 100 ms while 400 commands wait, and none starts on the approval afterwards', {
    timeout: FULL ? 120_000 : 60_000,
  }, async () => {
    const sessions = await Promise.all(Array.from({ length: SESSIONS }, (_, index) => fleet.session(`busy-${index}`)));
    const first = await sessions[0]!.submit('ask often');
    const [asked] = (await until(
      () => fleet.approvals.list(),
      (list) => list.length === 1,
    )) as [Approval];
    let grant = asked.id;
    await fleet.approvals.approve(grant, { scope: 'prefix' });
    await first.result();
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const waiting = new Set<string>();
      const tenEach = sessions.map((session) =>
        Promise.all(Array.from({ length: 10 }, () => session.submit('ask often'))),
      );
      const ends = (await Promise.all(tenEach)).flat().map(async (command) => {
        waiting.add(command.id);
        await command.result();
        waiting.delete(command.id);
      });
      const before = begun();
      await until(begun, (count) => count > before + SESSIONS);
      times.push(await timeOfRevocation(grant));
      const atRevocation = begun();
      const isAsked = async () => {
        const asking = new Set([...waiting].map((commandId) => commandId.split('.')[0]));
        const [question] = await fleet.approvals.list();
        return asking.size === (question?.count ?? 0) ? question : undefined;
      };
      const question = await untilFound('the question of all that wait', isAsked, 30_000);
      expect(begun()).toBe(atRevocation);
      grant = question.id;
      await fleet.approvals.approve(grant, { scope: 'prefix' });
      await Promise.all(ends);
    }
    expect(checkTimes('400 commands wait', times)).toBeLessThan(boundMs());
  });
});
