import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import type { TestFleet } from '../support/start-fleet.ts';

// Promise: while Redis is away, for however long, no session of a live host changes hands.

/** Duration of the fault, longer than the leases of sessions without grace. */
const AWAY_MS = 10_000;
const SESSIONS = 8;

describe('the sessions of two hosts', () => {
  test.concurrent.each([
    ['is killed and started again', (redis: OwnRedis) => redis.kill(), (redis: OwnRedis) => redis.start()],
    ['does not answer (SIGSTOP)', async (redis: OwnRedis) => redis.freeze(), async (redis: OwnRedis) => redis.thaw()],
  ])('keep their shells when Redis %s until both leases have run out', async (_how, away, back) => {
    await using redis = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always');
    const { stack, inspect } = await startInspectedFleet({ redisUrl: redis.url, workers: 2 });
    try {
      await keepsShells(stack, inspect, { away: () => away(redis), back: () => back(redis) });
    } finally {
      await endInspectedFleet(stack, inspect);
    }
  });
});

async function keepsShells(
  stack: TestFleet,
  inspect: FleetInspector,
  { away, back }: { away(): Promise<void>; back(): Promise<void> },
): Promise<void> {
  const names = Array.from({ length: SESSIONS }, (_, index) => `s${index}`);
  const sessions = await Promise.all(names.map((name) => stack.fleet.session(name, { hostGraceMs: 0 })));
  await Promise.all(sessions.map((session, index) => session.run(`before=${index}`)));
  const running = await Promise.all(
    sessions.slice(0, 4).map((session) => session.submit('echo begun; sleep 12; echo over', { timeoutMs: 60_000 })),
  );
  await Promise.all(names.slice(0, 4).map((name) => inspect.untilOutput(name)));
  await away();
  await delay(AWAY_MS);
  await back();
  const ends = await Promise.all(running.map((command) => command.result()));
  expect(ends.map(({ outcome, stdout, shell }) => [outcome, stdout, shell])).toEqual(
    running.map(() => ['success', 'begun\nover\n', { state: 'kept', epoch: 1 }]),
  );
  const answers = await Promise.all(sessions.map((session) => session.run('echo $before')));
  expect(answers.map(({ stdout, shell }) => [stdout, shell])).toEqual(
    names.map((_, index) => [`${index}\n`, { state: 'kept', epoch: 1 }]),
  );
  for (const name of names) expect(await inspect.broken(name)).toEqual([]);
}
