import { describe, expect, test } from 'vitest';
import { describePod } from './pod-states.ts';

const metadata = { name: 'worker-1' };
const none = { phase: 'Pending', conditions: [], containerStatuses: [] };

describe('the progress of a run', () => {
  test('has the words of the scheduler', () => {
    const conditions = [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }];
    expect(describePod({ metadata, status: { ...none, conditions } })).toBe(
      '  worker-1, Pending, 0/1 nodes are available',
    );
  });

  test('has the words of the kubelet, and says which container is not ready', () => {
    const waiting = { reason: 'ImagePullBackOff', message: 'no such image' };
    const containerStatuses = [
      { name: 'worker', ready: false, state: { waiting } },
      { name: 'proxy', ready: false, state: { running: { reason: '', message: '' } } },
      { name: 'redis', ready: true, state: { running: { reason: '', message: '' } } },
    ];
    expect(describePod({ metadata, status: { ...none, containerStatuses } })).toBe(
      '  worker-1, Pending, worker waiting: ImagePullBackOff: no such image, proxy is not ready',
    );
  });
});
