import type { SessionInfo, SessionSpec } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type PodFleet, startPodFleet } from '../support/kubernetes/pod-fleet.ts';
import { until } from '../support/until.ts';

// Sessions whose shells are Pods, through the public API: what needs the controls of the test's own cluster. What any
// cluster shows is in tests/kubernetes.

const MIB = 2 ** 20;
const GPU = 'example.com/gpu';
let pods: PodFleet;

beforeAll(async () => {
  const cluster = { nodes: [{ name: 'one', podPidsLimit: 256 }], housekeepingMs: 200 };
  pods = await startPodFleet({ slots: 50, cluster, section: { resources: [GPU], podPidsLimit: 256 } });
}, 60_000);
afterAll(() => pods?.[Symbol.asyncDispose]());

const open = (id: string, spec: SessionSpec = {}) =>
  pods.stack.fleet.session(id, { policy: 'kubernetes', limits: { memoryBytes: 64 * MIB }, ...spec });

/** Returns the name of the session's Pod. */
const podOf = (id: string): string | undefined =>
  pods.cluster.server.store
    .list('pods')
    .find(({ metadata }) => metadata.annotations?.['shellfleet.dev/session-of'] === `default:${id}`)?.metadata.name;

/** Opens a session whose command runs, and returns the name of its Pod. */
async function running(id: string, script: string) {
  const session = await open(id);
  await session.run('true');
  const command = await session.submit(script);
  await until(
    () => session.info(),
    ({ state }) => state === 'busy',
  );
  return { session, command, pod: podOf(id) ?? '' };
}

describe.concurrent('a session in a Pod', () => {
  test('reports an eviction for storage with the words of the kubelet', async () => {
    const { command, pod } = await running('evicted', 'sleep 60');
    pods.cluster.kubelet.evictForDisk('sessions', pod);
    const message = /filled the disk of its host.*: the node one evicted its Pod: The node was low on resource/;
    expect(await command.result()).toMatchObject({
      ...{ outcome: 'error', reason: 'disk' },
      error: { code: 'CONTAINER_LOST', message: expect.stringMatching(message) },
    });
  });

  test('tells what its Pod waits for, and ends its command before a drain', async () => {
    pods.cluster.server.setQuota('sessions', 'gpus', { [`requests.${GPU}`]: '0' });
    const session = await open('gpu', { limits: { memoryBytes: 64 * MIB, resources: { [GPU]: 1 } } });
    const command = await session.submit('echo on; sleep 2; echo off');
    const waits = (words: RegExp) =>
      until(
        () => session.info(),
        ({ waitsFor = '' }: SessionInfo) => words.test(waitsFor),
      );
    expect(await waits(/^exceeded quota: gpus/)).toMatchObject({ state: 'starting', queuedCommands: 1 });
    pods.cluster.server.setQuota('sessions', 'gpus', { [`requests.${GPU}`]: '4' });
    await waits(/^Unschedulable: 0\/\d+ nodes are available: .*Insufficient example.com\/gpu/);
    pods.cluster.kubelet.addNode({ name: 'two', capacity: { [GPU]: '1' } });
    await until(
      () => session.info(),
      ({ state, node }) => state === 'busy' && node === 'two',
    );
    expect((await session.info()).waitsFor).toBeUndefined();
    pods.cluster.kubelet.drain('two');
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'on\noff\n' });
    const next = await session.submit('echo new');
    await waits(/^Unschedulable/);
    pods.cluster.kubelet.cordon('two', false);
    const reason = expect.stringContaining('its Pod was evicted from the node two, which is drained');
    expect(await next.result()).toMatchObject({ stdout: 'new\n', shell: { state: 'lost', epoch: 2, reason } });
    await session.close();
  });

  test('leaves no Pod when it is closed while its Pod waits', async () => {
    const limits = { memoryBytes: 64 * MIB, cpus: 60, resources: { [GPU]: 9 } };
    pods.cluster.kubelet.addNode({ name: 'three', capacity: { cpu: '1' } });
    const session = await open('unwanted', { limits });
    const command = await session.submit('true');
    await until(
      () => session.info(),
      ({ waitsFor }) => waitsFor !== undefined,
    );
    await session.close();
    expect((await command.result()).outcome).toBe('cancellation');
    await until(
      () => podOf('unwanted'),
      (name) => name === undefined,
    );
  });
});

describe('a cluster that enforces no NetworkPolicy', () => {
  test('gets no session, and learns which setting mends that', async () => {
    await using open = await startPodFleet({ cluster: { enforced: false } });
    const session = await open.stack.fleet.session('exposed', {
      policy: 'kubernetes',
      limits: { memoryBytes: 64 * MIB },
    });
    const address = new URL(open.cluster.server.url).host;
    expect(await session.run('true')).toMatchObject({
      outcome: 'error',
      error: {
        code: 'SANDBOX_UNAVAILABLE',
        message: expect.stringMatching(`sandbox.network: the Pod reaches ${address}, .*unenforced: \\['network'\\]`),
      },
    });
  });
});
