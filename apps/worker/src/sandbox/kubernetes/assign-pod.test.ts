import { describe, expect, test } from 'vitest';
import { ApiRefusal } from './api/api-errors.ts';
import { assignPod } from './assign-pod.ts';
import { isOfSession, sessionOf } from './pod-names.ts';
import { podSchema } from './pod-schema.ts';

const session = { namespace: 'n', tenant: 't', session: 's' };
const NOW = Date.parse('2026-01-02T03:04:05Z');

const podOf = (metadata: object = {}, status: object = {}) =>
  podSchema.parse({
    metadata: { name: 'sf-1', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', ...metadata },
    spec: { containers: [] },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      containerStatuses: [{ name: 'shell', state: { running: {} } }],
      ...status,
    },
  });

interface Patch {
  metadata: { resourceVersion: string; labels: Record<string, string>; annotations: Record<string, string> };
}

/** An API server with one Pod, whose version each read or conflict raises, and the cache of a watch. */
function stage(cached = podOf(), { conflicts = 0, now = podOf({ resourceVersion: '7' }) } = {}) {
  const patches: Patch[] = [];
  const client = {
    get: async () => now,
    async patch(_resource: object, _name: string, body: unknown) {
      patches.push(body as Patch);
      if (patches.length <= conflicts)
        throw new ApiRefusal(409, { reason: 'Conflict', message: 'the object has been modified' });
      return podOf({ ...(body as Patch).metadata });
    },
  };
  const pods = { get: () => cached };
  return { patches, assign: () => assignPod({ client: client as never, pods, name: 'sf-1' }, session, NOW) };
}

describe('assignPod', () => {
  test('writes whose the Pod is and since when unless it has changed since', async () => {
    const { patches, assign } = stage();
    await assign();
    const [{ metadata } = { metadata: podOf().metadata }] = patches;
    expect(metadata.resourceVersion).toBe('1');
    expect(sessionOf(podOf({ ...metadata }), 'n')).toEqual(session);
    expect(metadata.annotations['shellfleet.dev/assigned-at']).toBe('2026-01-02T03:04:05.000Z');
  });

  test('reads the Pod again when its kubelet has changed it, and gives up at last', async () => {
    const met = stage(podOf(), { conflicts: 2 });
    await met.assign();
    expect(met.patches.map(({ metadata }) => metadata.resourceVersion)).toEqual(['1', '7', '7']);
    await expect(stage(podOf(), { conflicts: 9 }).assign()).rejects.toThrow('to give a Pod to a session');
  });

  test('takes as done what an earlier call has written whose reply was lost', async () => {
    const probe = stage();
    await probe.assign();
    const mine = podOf({ ...probe.patches[0]?.metadata, resourceVersion: '8' });
    expect(isOfSession(mine, session)).toBe(true);
    const { patches, assign } = stage(podOf(), { conflicts: 1, now: mine });
    await assign();
    expect(patches).toHaveLength(1);
  });

  // POOL-POD-1, POOL-POD-2
  test.each([
    ['has a session', podOf({ labels: { 'shellfleet.dev/session': 'other' } }), 'has a session already'],
    ['is deleted', podOf({ deletionTimestamp: '2026-01-01T00:00:00Z' }), 'is about to end'],
    ['is evicted', podOf({}, { conditions: [{ type: 'DisruptionTarget', status: 'True' }] }), 'is about to end'],
    ['is on a silent node', podOf({}, { conditions: [{ type: 'Ready', status: 'False' }] }), 'is about to end'],
    ['has ended', podOf({}, { phase: 'Failed' }), 'does not run'],
  ])('refuses a Pod that %s, also after a conflict', async (_what, pod, problem) => {
    const { patches, assign } = stage(pod);
    await expect(assign()).rejects.toThrow(problem);
    expect(patches).toEqual([]);
    await expect(stage(podOf(), { conflicts: 1, now: pod }).assign()).rejects.toThrow(problem);
  });
});
