import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { containersWith, ended, podWith, RUNNING } from '../../../test-support/pod.ts';
import { PodSandbox } from './pod-sandbox.ts';
import type { Pod } from './pod-schema.ts';

const NAME = 'sf-0123456789ab';
const DELETED = { deletionTimestamp: '2026-01-01T00:01:00Z', deletionGracePeriodSeconds: 30 };
const ENDED = { ...RUNNING, ...containersWith(ended(137, 'Error')) };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Follows a Pod that runs. `show` reports its next state. */
function stage() {
  const listeners = new Set<(pod: Pod, isGone: boolean) => void>();
  const running = podWith(RUNNING);
  const sandbox = new PodSandbox({
    ...{ id: '0123456789ab', name: NAME, createdAt: 0, keeperProtocol: 1, port: 7443, hasClaim: false },
    link: { token: '', privateKey: undefined as never, psk: Buffer.alloc(32) },
    start: {
      client: undefined as never,
      manifests: undefined as never,
      pods: {
        get: () => running,
        refresh() {},
        follow(_name, listener) {
          listeners.add(listener);
          listener(running, false);
          return () => listeners.delete(listener);
        },
      },
    },
  });
  sandbox.follow();
  let death: unknown;
  void sandbox.died.then((one) => {
    death = one;
  });
  return {
    sandbox,
    listeners,
    show: (pod: Pod, isGone = false) => {
      for (const listener of listeners) listener(pod, isGone);
    },
    deathAfter: async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms);
      return death;
    },
  };
}

describe('a Pod that is followed', () => {
  test('has the address and the node of its status', async () => {
    const { sandbox } = stage();
    if (sandbox.link.type !== 'tcp') throw new Error('a keeper in a Pod is dialled');
    expect(await sandbox.link.address(new AbortController().signal)).toEqual({ host: '10.1.2.3', port: 7443 });
    expect(sandbox.node).toBe('n1');
  });

  test('dies with the reason that the kubelet reports after the end of the container', async () => {
    const { show, deathAfter } = stage();
    show(podWith(ENDED));
    expect(await deathAfter(900)).toBeUndefined();
    show(podWith({ ...ENDED, phase: 'Failed', reason: 'Evicted', message: 'low on ephemeral-storage' }));
    expect(await deathAfter(0)).toMatchObject({ reason: 'disk', exitCode: 137 });
  });

  test('counts as out of memory when no reason comes within a second', async () => {
    const { show, deathAfter, listeners } = stage();
    show(podWith(ENDED));
    expect(await deathAfter(1_000)).toMatchObject({ reason: 'oom', exitCode: 137 });
    expect(listeners.size).toBe(0);
  });

  test('is lost when its node does not end it within its grace', async () => {
    const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }];
    const { sandbox, show, deathAfter } = stage();
    show(podWith({ ...RUNNING, conditions }, DELETED));
    expect(sandbox.ending).toMatchObject({ reason: 'killed' });
    expect(await deathAfter(39_000)).toBeUndefined();
    const detail = 'the node n1 does not answer or takes no such Pods any more';
    expect(await deathAfter(1_000)).toEqual({ reason: 'killed', exitCode: null, detail });
  });

  test('dies at once when it ends within its grace', async () => {
    const { show, deathAfter } = stage();
    show(podWith(RUNNING, DELETED));
    show(podWith({ ...ENDED, phase: 'Succeeded', ...containersWith(ended(0)) }, DELETED));
    expect(await deathAfter(0)).toEqual({ reason: 'removed', exitCode: 0 });
  });

  test('was removed when it is gone', async () => {
    const { show, deathAfter } = stage();
    show(podWith(RUNNING), true);
    expect(await deathAfter(0)).toEqual({ reason: 'removed', exitCode: null });
  });
});
