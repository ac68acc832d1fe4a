import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, Fleet, type Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

// Hundreds of sessions that ask questions, on real workers with shells in memory.

let directory: string;
let own: OwnRedis;
let fleet: Fleet;
let workers: FakeShellWorker[] = [];
const of = newFleet();

const startWorkers = async () => {
  const redisUrl = own.url;
  workers = await Promise.all(['h1', 'h2'].map((id) => startFakeShellWorker({ redisUrl, ...of, id, slots: 300 })));
};
const closeWorkers = () => Promise.all(workers.map(({ worker }) => worker.close('end', 2_000)));

beforeAll(async () => {
  // Every write is in the file before it is acknowledged. The file is in memory, because a disk would triple the time
  // of the test.
  directory = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'shellfleet-redis-'));
  own = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always', '--dir', directory);
  await startWorkers();
  fleet = await Fleet.connect({ redisUrl: own.url, namespace: of.namespace, sealKeys: [of.sealKey] });
});
afterAll(async () => {
  await fleet?.close();
  await closeWorkers();
  await own?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const open = (name: string, count: number): Promise<Session[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => fleet.session(`${name}-${index}`)));
const begun = () => workers.reduce((sum, worker) => sum + worker.begun(), 0);
const busySlots = async () => (await fleet.hosts()).reduce((sum, { slots, free }) => sum + slots - free, 0);
const submitAll = (sessions: readonly Session[], script: string) =>
  Promise.all(sessions.map((session) => session.submit(script)));
const endsOf = async (commands: readonly Command[]) => {
  const results = await Promise.all(commands.map((command) => command.result()));
  return [...new Set(results.map(({ outcome }) => outcome))];
};
const shown = async () => (await fleet.approvals.list()).map(({ script, count }) => `${script}: ${count}`).sort();

describe('two questions of 1000 sessions', () => {
  test('survive a kill of Redis and restarts of all workers, and one answer settles 500', {
    timeout: 120_000,
  }, async () => {
    const [left, right] = [await open('left', 500), await open('right', 500)];
    const commands = [await submitAll(left, 'ask left'), await submitAll(right, 'ask right')] as const;
    const both = ['ask left: 500', 'ask right: 500'];
    await until(shown, (list) => list.join() === both.join(), 60_000);
    await until(busySlots, (busy) => busy === 0, 60_000);
    const before = await fleet.approvals.list();
    await closeWorkers();
    await own.restart();
    await startWorkers();
    await until(
      () => shown().catch(() => []),
      (list) => list.join() === both.join(),
    );
    expect(await fleet.approvals.list()).toEqual(before);
    expect(begun()).toBe(0);
    const idOf = (script: string) => before.find((approval) => approval.script === script)?.id ?? '';
    await fleet.approvals.approve(idOf('ask left'), { scope: 'session' });
    await fleet.approvals.deny(idOf('ask right'));
    expect(await endsOf(commands[1])).toEqual(['denial']);
    expect(await endsOf(commands[0])).toEqual(['success']);
    expect(begun()).toBe(500);
    await fleet.approvals.revoke(idOf('ask left'));
    await submitAll(left, 'ask left');
    await until(shown, (list) => list.join() === 'ask left: 500', 60_000);
    expect(begun()).toBe(500);
  });
});
