// What a keeper finds in force on its container, and which addresses it reaches.
import { claimKeeper } from '@shellfleet/worker/shell';
import { describe, expect, inject, test } from 'vitest';
import { KeeperContainer, type KeeperContainerOptions } from '../support/keeper-container.ts';

/** The forwarder of the keeper listens there, if the sandbox expects a proxy. */
const FORWARDER = '127.0.0.1:61080';
const NOBODY = '127.0.0.1:9';
const ELSEWHERE = '192.0.2.1:443';

async function examine(options: Partial<KeeperContainerOptions>, probes: readonly string[]) {
  await using box = await KeeperContainer.create({
    dockerHost: inject('dockerHost'),
    image: inject('sessionImage'),
    env: { SF_EGRESS: '/tmp/proxy' },
    ...options,
  });
  const listener = await box.listen();
  await box.container.start();
  const transport = await listener.accept({ signal: AbortSignal.timeout(20_000) });
  const { connection } = await claimKeeper({ transport, fence: 1, token: box.token });
  listener.close();
  // The second examination takes the place of the first, which gets no reply.
  const [first, second] = await Promise.allSettled([connection.examine([]), connection.examine(probes)]);
  connection.close('released');
  expect(first).toMatchObject({ status: 'rejected' });
  if (second.status === 'rejected') throw second.reason;
  return second.value;
}

describe('an examination of a container', () => {
  test('finds its limits, its lack of privileges, and what it reaches', async () => {
    const found = await examine({ pids: 128, memoryBytes: 200 << 20 }, [FORWARDER, NOBODY, ELSEWHERE]);
    expect(found).toMatchObject({
      effectiveCapabilities: 0n,
      boundingCapabilities: 0n,
      noNewPrivs: true,
      memoryMaxBytes: 200 << 20,
      pidsMax: 128,
      execWorkspace: true,
    });
    expect([1, 2]).toContain(found.cgroup);
    expect(found.uidMap).not.toHaveLength(0);
    expect(found.seccomp).toBeTypeOf('number');
    expect(Object.fromEntries(found.probes)).toEqual({
      [FORWARDER]: 'connected',
      [NOBODY]: 'refused',
      [ELSEWHERE]: 'unreachable',
    });
  });

  test('finds a workspace without the right to execute, and no bound on processes', async () => {
    const found = await examine({ pids: -1, tmpfs: { '/workspace': 'rw,noexec,size=1m' } }, []);
    expect(found).toMatchObject({ execWorkspace: false, pidsMax: Number.POSITIVE_INFINITY });
  });
});
