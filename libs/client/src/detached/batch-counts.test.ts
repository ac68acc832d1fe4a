import { describe, expect, test } from 'vitest';
import { ProgressCount } from '../batch/batch-progress.ts';
import { EarlierCounts } from './batch-counts.ts';

describe('the counts of all drivers of a batch', () => {
  test('add what earlier drivers have ended to what this one has', () => {
    const earlier = new EarlierCounts();
    earlier.add({ passed: true, outcome: 'success' });
    expect(earlier.hasFailure).toBe(false);
    earlier.add({ passed: false, outcome: 'lost' });
    expect(earlier.hasFailure).toBe(true);
    const none = { failure: 0, timeout: 0, denial: 0, blocked: 0, cancellation: 0, error: 0 };
    const own = { tasks: 4, skipped: 2, passed: 1, failed: 0, infrastructure: 1, cancelled: 0, success: 1, lost: 1 };
    expect(earlier.withTotals({ ...none, ...own })).toEqual({
      ...{ ...none, tasks: 4, skipped: 0, passed: 2, failed: 0, infrastructure: 2, cancelled: 0, success: 2, lost: 2 },
    });
    expect(earlier.withTotals({ ...none, ...own, tasks: 0 }).tasks).toBe(2);
    const progress = new ProgressCount(4);
    for (let skipped = 0; skipped < 2; skipped++) progress.skip();
    progress.begin('c');
    progress.end('c', { passed: true, outcome: 'success' });
    expect(earlier.withProgress(progress.read())).toMatchObject({
      ...{ done: 3, passed: 2, infrastructure: 1, skipped: 0, running: 0, queued: 1 },
    });
  });
});
