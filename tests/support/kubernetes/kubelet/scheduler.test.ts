import { describe, expect, test } from 'vitest';
import { unschedulable } from './scheduler.ts';

describe('why a Pod waits', () => {
  test.each([
    [
      [['Insufficient cpu'], ['Insufficient cpu'], ['Insufficient cpu']],
      undefined,
      '0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.',
    ],
    [
      [['node(s) were unschedulable'], ['Insufficient memory', 'Too many pods']],
      undefined,
      '0/2 nodes are available: 1 Insufficient memory, 1 Too many pods, 1 node(s) were unschedulable. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.',
    ],
    [
      [[]],
      'persistentvolumeclaim "a" not found',
      '0/1 nodes are available: persistentvolumeclaim "a" not found. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.',
    ],
    [[], undefined, 'no nodes available to schedule pods'],
  ])('%j', (reasons, claims, message) => {
    expect(unschedulable(reasons.length, reasons, claims)).toBe(message);
  });
});
