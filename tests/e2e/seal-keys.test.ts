import { randomBytes } from 'node:crypto';
import { Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

const newKey = () => randomBytes(32).toString('base64');
const [own, other, nobodys] = [newKey(), newKey(), newKey()];
let stack: TestFleet;
beforeAll(async () => {
  // h1 has one key only, h2 both, as in the middle of a rotation.
  stack = await startFleet({
    workers: 2,
    slots: 4,
    envs: [{ SHELLFLEET_SEAL_KEY: own }, { SHELLFLEET_SEAL_KEY: `${other},${own}` }],
  });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const connect = (sealKeys: string[]) =>
  Fleet.connect({ redisUrl: stack.redisUrl, namespace: stack.namespace, sealKeys });

describe('sessions with another seal key', () => {
  test('run on the host that has the key, and hold up no others', async () => {
    await using theirs = await connect([other]);
    await using ours = await connect([own]);
    const sessions = await Promise.all(Array.from({ length: 4 }, (_, index) => theirs.session(`other-${index}`)));
    const results = await Promise.all(sessions.map((session) => session.run('echo opened')));
    expect(results.map(({ stdout, hostId }) => ({ stdout, hostId }))).toEqual(
      Array(4).fill({ stdout: 'opened\n', hostId: 'h2' }),
    );
    // h2 is full now. Two more sessions that only h2 can run wait, and h1 takes other sessions ahead of them.
    const waiting = await Promise.all(
      [4, 5].map(async (index) => (await theirs.session(`other-${index}`)).submit('true')),
    );
    expect(await ours.run('echo past')).toMatchObject({ stdout: 'past\n', hostId: 'h1' });
    for (const session of sessions) await session.close();
    for (const command of waiting) expect(await command.result()).toMatchObject({ outcome: 'success', hostId: 'h2' });
  }, 60_000);

  test('end commands with SEAL_KEY_UNKNOWN when no live host has the key; close works', async () => {
    await using foreign = await connect([nobodys]);
    await using ours = await connect([own]);
    const session = await foreign.session('nobodys');
    const command = await session.submit('echo never');
    await until(
      async () => (await session.info()).noHostReason,
      (reason) => reason?.includes('has the seal key') === true,
    );
    expect(await command.result()).toMatchObject({
      outcome: 'error',
      error: { code: 'SEAL_KEY_UNKNOWN', message: expect.stringContaining('SHELLFLEET_SEAL_KEY=new,old') },
    });
    await expect(ours.session('nobodys')).rejects.toMatchObject({ code: 'SEAL_KEY_UNKNOWN' });
    await (await ours.attach('nobodys'))?.close();
    expect((await session.info()).state).toBe('closed');
  }, 120_000);
});
