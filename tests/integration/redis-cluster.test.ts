import { Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMailboxHost } from '../support/mailbox-host/mailbox-host.ts';
import { type OwnCluster, startOwnCluster } from '../support/own-cluster.ts';

let own: OwnCluster;
beforeAll(async () => {
  own = await startOwnCluster();
});
afterAll(() => own[Symbol.asyncDispose]());

test('sessions on every node of a Cluster run and stream', async () => {
  const sealKey = Buffer.alloc(32, 1).toString('base64');
  const fleet = await Fleet.connect({ redisUrl: own.url, namespace: 'a', sealKeys: [sealKey] });
  await using host = await startMailboxHost({ redisUrl: own.url, namespace: 'a', sealKey, slots: 10 });
  const outputs = await Promise.all(
    ['s1', 's2', 's3', 's4', 's5'].map(async (id) => {
      const session = await fleet.session(id);
      return (await session.run(`echo ${id}`)).stdout;
    }),
  );
  expect(outputs).toEqual(['s1\n', 's2\n', 's3\n', 's4\n', 's5\n']);
  expect(host.began.length).toBe(5);
  await fleet.close();
});
