import { describe, expect, test } from 'vitest';
import { containersWith, ended, podWith, RUNNING } from '../../../test-support/pod.ts';
import type { Pod } from './pod-schema.ts';
import { readDeath, readPodState } from './pod-state.ts';

const waiting = (reason: string, message = '') => ({ waiting: { reason, message } });
const pending = (status: object) => podWith({ phase: 'Pending', ...status });
const disrupted = (reason: string, message = '') => ({
  conditions: [{ type: 'DisruptionTarget', status: 'True', reason, message }],
});
const DELETED = { deletionTimestamp: '2026-01-01T00:01:00Z' };

describe('readPodState', () => {
  test('finds the address of a Pod whose shell runs', () => {
    expect(readPodState(podWith(RUNNING))).toEqual({ type: 'running', address: '10.1.2.3' });
  });

  test.each(['10.1.2.3', '192.0.2.1', 'fd00::2', '2001:db8::1'])('takes the address %s', (podIP) => {
    expect(readPodState(podWith({ ...RUNNING, podIP }))).toEqual({ type: 'running', address: podIP });
  });

  test.each([
    ...['127.0.0.1', '127.9.9.9', '0.0.0.0', '169.254.169.254', '::1', '::', 'fe80::1', 'fe80::1%eth0'],
    ...['::ffff:127.0.0.1', '::ffff:7f00:1', 'localhost', 'redis.other.svc', '10.1.2', '10.1.2.3:22', ''],
  ])('does not take %j for the address of a Pod', (podIP) => {
    expect(readPodState(podWith({ ...RUNNING, podIP }))).toMatchObject({ type: 'pending' });
  });

  test.each<[string, Pod, string | undefined]>([
    ['nothing yet', podWith({}), undefined],
    ['its node', pending(containersWith(waiting('PodInitializing'), waiting('ContainerCreating'))), undefined],
    ['an address', podWith({ ...RUNNING, podIP: undefined }), undefined],
    [
      'an address elsewhere',
      podWith({ ...RUNNING, podIP: '127.0.0.1' }),
      'its Pod has no address that can be dialled: 127.0.0.1',
    ],
    [
      'a node with room',
      pending({
        conditions: [
          {
            ...{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' },
            message: '0/3 nodes are available: 3 Insufficient cpu.\npreemption: 0/3 nodes are available.',
          },
        ],
      }),
      'Unschedulable: 0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available',
    ],
    [
      'a runtime that is slow',
      pending(containersWith(waiting('CreateContainerError', 'context deadline exceeded'))),
      'CreateContainerError: context deadline exceeded',
    ],
  ])('is pending while a Pod waits for %s', (_case, pod, waitsFor) => {
    expect(readPodState(pod)).toEqual({ type: 'pending', waitsFor });
  });

  test.each([
    ['ErrImagePull', 'pull access denied', 'ErrImagePull: pull access denied'],
    ['ImagePullBackOff', 'Back-off pulling image "alpine:3"', 'ImagePullBackOff: Back-off pulling image "alpine:3"'],
    ['InvalidImageName', '', 'InvalidImageName'],
    ['ErrImageNeverPull', 'Container image is not present', 'ErrImageNeverPull: Container image is not present'],
  ])('refuses an image for %s, with the words of the kubelet', (reason, message, words) => {
    const pod = pending(containersWith(waiting(reason, message)));
    expect(readPodState(pod)).toEqual({ type: 'refused', for: 'image', image: 'alpine:3', words });
  });

  test('names the image of the keeper when that one is missing', () => {
    const pod = pending(containersWith(waiting('PodInitializing'), waiting('ErrImagePull')));
    expect(readPodState(pod)).toMatchObject({ for: 'image', image: 'registry/keeper:1' });
  });

  test('refuses a container that cannot be made', () => {
    const words = 'CreateContainerConfigError: container has runAsNonRoot and image will run as root';
    const pod = pending(
      containersWith(waiting('CreateContainerConfigError', 'container has runAsNonRoot and image will run as root')),
    );
    expect(readPodState(pod)).toEqual({ type: 'refused', for: 'container', image: 'alpine:3', words });
  });

  test('refuses a Pod whose keeper could not be installed', () => {
    const pod = podWith({ phase: 'Failed', ...containersWith(waiting('PodInitializing'), ended(126, 'Error')) });
    const words = 'it ended with 126';
    expect(readPodState(pod)).toEqual({ type: 'refused', for: 'container', image: 'registry/keeper:1', words });
  });

  test.each([
    ['keeper', containersWith(waiting('PodInitializing'), ended(128, 'StartError', 'exec format error'))],
    ['shell', containersWith(ended(128, 'StartError', 'exec format error'))],
  ])('refuses a Pod whose %s the runtime cannot start, with its words', (_container, containers) => {
    const state = readPodState(podWith({ phase: 'Failed', ...containers }));
    expect(state).toMatchObject({ type: 'refused', words: 'StartError: exec format error' });
  });

  test.each([
    ['OutOfcpu', 'Node didn’t have enough resource: cpu'],
    ['NodeAffinity', ''],
    ['Evicted', 'Pod was rejected: The node had condition: [DiskPressure].'],
    ['UnexpectedAdmissionError', 'Allocate failed due to no free devices'],
  ])('is rejected when the node did not accept a Pod for %s', (reason, message) => {
    const state = readPodState(podWith({ phase: 'Failed', reason, message }));
    expect(state).toMatchObject({ type: 'rejected', words: expect.stringContaining(reason) });
  });

  test('is rejected when the kubelet reports containers that it never created as ended', () => {
    const unknown = { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } };
    const pod = podWith({ phase: 'Failed', reason: 'OutOfmemory', ...containersWith(unknown, unknown) });
    expect(readPodState(pod)).toMatchObject({ type: 'rejected' });
  });

  test('is dead when the shell of a running Pod has ended', () => {
    const pod = podWith({ ...RUNNING, ...containersWith(ended(3, 'Error')) });
    expect(readPodState(pod)).toEqual({ type: 'dead', death: { reason: 'exited', exitCode: 3 } });
  });

  test('is dead when it reached its age before anything began', () => {
    expect(readPodState(podWith({ phase: 'Failed', reason: 'DeadlineExceeded' }))).toMatchObject({ type: 'dead' });
  });
});

describe('readDeath', () => {
  const over = { phase: 'Failed', ...containersWith(ended(137, 'Error')) };

  test.each<[string, Pod, object]>([
    ['for memory', podWith({ ...over, ...containersWith(ended(137, 'OOMKilled')) }), { reason: 'oom', exitCode: 137 }],
    [
      'for memory while the node evicts it',
      podWith({ ...over, reason: 'Evicted', ...containersWith(ended(137, 'OOMKilled')) }),
      { reason: 'oom', exitCode: 137 },
    ],
    [
      'for its storage',
      podWith({ ...over, reason: 'Evicted', message: 'Pod ephemeral local storage usage exceeds the total limit.' }),
      {
        ...{ reason: 'disk', exitCode: 137 },
        detail: 'the node n1 evicted its Pod: Pod ephemeral local storage usage exceeds the total limit',
      },
    ],
    [
      'for its workspace',
      podWith({ ...over, reason: 'Evicted', message: 'Usage of EmptyDir volume "workspace" exceeds the limit "1Gi".' }),
      { reason: 'disk' },
    ],
    [
      'for the storage of its node',
      podWith({ ...over, reason: 'Evicted', message: 'The node was low on resource: ephemeral-storage.' }),
      { reason: 'disk' },
    ],
    [
      'for the memory of its node',
      podWith({ ...over, reason: 'Evicted', message: 'The node was low on resource: memory.' }),
      { reason: 'killed', detail: 'the node n1 evicted its Pod: The node was low on resource: memory' },
    ],
    [
      'for its age',
      podWith({ ...over, reason: 'DeadlineExceeded', message: 'Pod was active too long' }),
      { reason: 'killed', detail: 'its Pod reached the age at which the kubelet ends it' },
    ],
    [
      'for a Pod of a higher priority',
      podWith({ ...over, ...disrupted('PreemptionByScheduler', 'preempting') }, DELETED),
      {
        reason: 'killed',
        detail: 'the scheduler ended its Pod on the node n1 for one of a higher priority: preempting',
      },
    ],
    [
      'with a drained node',
      podWith({ ...over, ...disrupted('EvictionByEvictionAPI') }, DELETED),
      { reason: 'killed', detail: 'its Pod was evicted from the node n1, which is drained' },
    ],
    [
      'with a lost node',
      podWith({ ...RUNNING, ...disrupted('DeletionByTaintManager') }, DELETED),
      { reason: 'killed', exitCode: null, detail: 'the node n1 does not answer or takes no such Pods any more' },
    ],
    [
      'with a node that shuts down',
      podWith({ ...over, reason: 'Terminated', message: 'Pod was terminated in response to imminent node shutdown.' }),
      {
        reason: 'killed',
        detail: 'the node n1 ended its Pod (Terminated): Pod was terminated in response to imminent node shutdown',
      },
    ],
    ['by a deletion', podWith(RUNNING, DELETED), { reason: 'removed', exitCode: null }],
    ['by a kill after a deletion', podWith(over, DELETED), { reason: 'removed', exitCode: 137 }],
    [
      'by a kill that nothing explains',
      podWith(over),
      { reason: 'oom', exitCode: 137, detail: expect.stringMatching(/^that is most likely, since/) },
    ],
    [
      'without a known end',
      podWith({ ...over, ...containersWith(ended(137, 'ContainerStatusUnknown')) }),
      { reason: 'exited', exitCode: 137 },
    ],
    ['by itself', podWith({ ...over, ...containersWith(ended(3, 'Error')) }), { reason: 'exited', exitCode: 3 }],
  ])('tells that a Pod ended %s', (_case, pod, death) => {
    expect(readDeath(pod)).toMatchObject(death);
  });

  test('cuts words that are too long', () => {
    const { detail = '' } = readDeath(podWith({ ...over, reason: 'Evicted', message: 'x'.repeat(5_000) }));
    expect(detail.length).toBeLessThan(600);
  });
});
