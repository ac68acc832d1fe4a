import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { containersWith, ended, podWith, RUNNING } from '../../../test-support/pod.ts';
import { ApiRefusal, ApiUnreachable } from './api/api-errors.ts';
import type { Pod } from './pod-schema.ts';
import { startPod } from './start-pod.ts';

type Shown = { pod: Pod; isGone?: boolean };

const OVER_QUOTA = new ApiRefusal(403, {
  reason: 'Forbidden',
  message: 'pods "sf-1" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10',
});
const UNKNOWN_QUOTA = new ApiRefusal(403, {
  reason: 'Forbidden',
  message: 'pods "sf-1" is forbidden: status unknown for quota: team, resources: pods',
});
const REJECTED = podWith({ phase: 'Failed', reason: 'OutOfcpu', message: 'not enough cpu' });
const unschedulable = podWith({
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no node fits' }],
});

interface Cluster {
  replies?: Error[];
  shown?: Shown[];
  /** Time for which a deletion takes. */
  deletionMs?: number;
  /** State that the server has, and a list shows, while the watch is silent. */
  unseen?: Pod;
}

/** Starts a Pod in a cluster that replies to creations, and then shows states of the Pod. */
function stage({ replies = [], shown = [], deletionMs = 0, unseen }: Cluster) {
  const calls: string[] = [];
  const words: (string | undefined)[] = [];
  const removal = new AbortController();
  const done = startPod({
    client: {
      async create({ plural }) {
        calls.push(`create ${plural}`);
        const reply = replies.shift();
        if (reply !== undefined) throw reply;
        return undefined as never;
      },
      async delete(_resource, _name, options) {
        calls.push(`delete ${JSON.stringify(options)}`);
        await delay(deletionMs);
      },
      get: () => (unseen ? Promise.resolve(unseen as never) : Promise.reject(new Error('nothing is asked so early'))),
    },
    pods: {
      get: () => undefined,
      refresh() {
        calls.push('list');
        if (unseen) shown.push({ pod: unseen });
      },
      follow(_name, listener) {
        const rest = setInterval(() => {
          const next = shown.shift();
          if (next !== undefined) listener(next.pod, next.isGone ?? false);
        }, 1);
        return () => clearInterval(rest);
      },
    },
    ...{ name: 'sf-1', signal: removal.signal, slowness: 0.01 },
    manifests: async () => ({ pod: {} as never, claim: undefined }),
    onWait: (text) => words.push(text),
  });
  return { done, calls, words: () => words.filter((text) => text !== undefined), removal };
}

afterEach(() => void vi.useRealTimers());

describe('startPod', () => {
  test('resolves when the shell runs', async () => {
    const { done, calls } = stage({ shown: [{ pod: podWith({}) }, { pod: podWith(RUNNING) }] });
    await done;
    expect(calls).toEqual(['create pods']);
  });

  test('lists the Pods again when a silent watch shows nothing of a Pod', async () => {
    vi.useFakeTimers();
    const { done, calls } = stage({ unseen: podWith(RUNNING) });
    await vi.advanceTimersByTimeAsync(15_010);
    await done;
    expect(calls).toEqual(['create pods', 'list']);
  });

  test('waits while a quota is not counted yet or used up, and tells its words', async () => {
    const { done, calls, words } = stage({ replies: [UNKNOWN_QUOTA, OVER_QUOTA], shown: [{ pod: podWith(RUNNING) }] });
    await done;
    const quota = 'exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10';
    expect([calls.length, words()]).toEqual([3, ['status unknown for quota: team, resources: pods', quota]]);
  });

  test('waits while no node fits, and tells the words of the scheduler', async () => {
    const { done, words } = stage({ shown: [{ pod: unschedulable }, { pod: podWith(RUNNING) }] });
    await done;
    expect(words()).toEqual(['Unschedulable: no node fits']);
  });

  test.each([
    ['has not replied', new ApiUnreachable('connect ECONNREFUSED')],
    ['cannot serve', new ApiRefusal(503, { message: 'etcd is away' })],
    ['counts a quota anew', new ApiRefusal(409, { reason: 'Conflict' })],
  ])('creates the Pod again when the server %s', async (_case, reply) => {
    const { done, calls } = stage({ replies: [reply], shown: [{ pod: podWith(RUNNING) }] });
    await done;
    expect(calls).toEqual(['create pods', 'create pods']);
  });

  test('takes a Pod that an earlier call created as created', async () => {
    const there = new ApiRefusal(409, { reason: 'AlreadyExists' });
    const { done, calls } = stage({ replies: [there], shown: [{ pod: podWith(RUNNING) }] });
    await done;
    expect(calls).toEqual(['create pods']);
  });

  test('gives up at once when the server refuses the Pod', async () => {
    const { done } = stage({ replies: [new ApiRefusal(403, { message: 'violates PodSecurity "restricted:latest"' })] });
    await expect(done).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringMatching(/violates PodSecurity.*Sessions need a namespace/),
    });
  });

  test('gives up at once when the kubelet has no image', async () => {
    const pod = podWith(containersWith({ waiting: { reason: 'ErrImagePull', message: 'not found' } }));
    await expect(stage({ shown: [{ pod }] }).done).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      message: expect.stringContaining('alpine:3: ErrImagePull: not found'),
    });
  });

  test('gives up at once when the runtime cannot start the container', async () => {
    const message = 'failed to create containerd task: exec: "/sf/keeper": permission denied';
    const pod = podWith({ phase: 'Failed', ...containersWith(ended(128, 'StartError', message)) });
    await expect(stage({ shown: [{ pod }] }).done).rejects.toMatchObject({
      code: 'SESSION_START_FAILED',
      message: `The kubelet cannot start a container of the image alpine:3: StartError: ${message}.`,
    });
  });

  test('creates a Pod again that its node did not accept', async () => {
    const shown = [{ pod: REJECTED }, { pod: REJECTED, isGone: true }, { pod: podWith(RUNNING, { uid: 'u2' }) }];
    const { done, calls } = stage({ shown });
    await done;
    expect(calls).toEqual([
      'create pods',
      'delete {"gracePeriodSeconds":0,"preconditions":{"uid":"u1"}}',
      'create pods',
    ]);
  });

  test('gives up a Pod that is unwanted while its rejected one is deleted', async () => {
    const { done, calls, removal } = stage({ shown: [{ pod: REJECTED }], deletionMs: 50 });
    await vi.waitFor(() => expect(calls).toHaveLength(2));
    removal.abort(new Error('closed'));
    await expect(done).rejects.toThrow('closed');
  });

  test.each<[string, Shown, RegExp]>([
    ['is deleted', { pod: podWith({}), isGone: true }, /ended on the node n1 before its shell began: it was deleted/],
    [
      'ends',
      { pod: podWith({ phase: 'Failed', ...containersWith(ended(1, 'Error')) }) },
      /ended on the node n1 before its shell began: its container ended with 1/,
    ],
  ])('gives up when the Pod %s before its shell runs', async (_case, one, message) => {
    await expect(stage({ shown: [one] }).done).rejects.toMatchObject({ code: 'SESSION_START_FAILED', message });
  });

  test.each([
    ['the quota', { replies: Array<Error>(1_000).fill(OVER_QUOTA) }],
    ['a node', { shown: [{ pod: unschedulable }] }],
  ])('ends its wait for %s when the Pod is not wanted any more', async (_case, cluster) => {
    const { done, words, removal } = stage(cluster);
    await vi.waitFor(() => expect(words().length).toBeGreaterThan(0));
    removal.abort(new Error('closed'));
    await expect(Promise.race([done, delay(1_000)])).rejects.toThrow('closed');
  });
});
