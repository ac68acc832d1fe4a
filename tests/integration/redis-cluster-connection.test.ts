import { readSealedSpec, submit } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import { type Connected, connectRedis, countCalls } from '@shellfleet/redis';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newKeys, newSubmission, openSession } from '../support/mailbox-session.ts';
import { type OwnCluster, startOwnCluster } from '../support/own-cluster.ts';

describe('a connection to a Cluster', () => {
  let own: OwnCluster;
  let connected: Connected;
  let keys: SessionKeys;
  let generation: string;

  beforeAll(async () => {
    own = await startOwnCluster();
  });
  afterAll(() => own[Symbol.asyncDispose]());
  beforeEach(async () => {
    connected = await connectRedis(own.url, 'host', 'test');
    onTestFinished(() => connected.redis.disconnect());
    keys = newKeys();
    generation = await openSession(connected.redis, keys);
  });

  test.each<[string, () => unknown]>([
    ['after a submit', () => submit(connected.redis, keys, newSubmission(generation))],
    ['while its calls are counted', () => countCalls(connected.redis, { called: () => {}, failed: () => {} })],
    ['if it recovers after each break', () => connected.recoverFirst(async () => {})],
  ])('runs transactions %s', async (_when, begin) => {
    await begin();
    expect(await readSealedSpec(connected.redis, keys)).toMatchObject({ generation, spec: 'sealed spec' });
  });

  test('sends submits that wait before it ends', async () => {
    const submits = [newSubmission(generation), newSubmission(generation)].map((entry) =>
      submit(connected.redis, keys, entry),
    );
    await connected.redis.quit();
    expect(await Promise.all(submits)).toMatchObject([{ type: 'accepted' }, { type: 'accepted' }]);
  });
});
