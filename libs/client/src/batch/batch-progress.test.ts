import { describe, expect, test } from 'vitest';
import { ProgressCount } from './batch-progress.ts';

describe('progress of a batch', () => {
  test('counts verdicts, and estimates the end from the rate of the last minute', () => {
    let now = 5_000;
    const count = new ProgressCount(100, () => now);
    expect(count.read()).toMatchObject({ done: 0, queued: 100, perSecond: 0, etaMs: undefined, slowest: undefined });
    count.skip();
    for (const id of ['slow', 'a', 'b', 'c', 'd']) count.begin(id);
    now += 2_000;
    count.end('a', { passed: true, outcome: 'failure' });
    count.end('b', { passed: false, outcome: 'success' });
    count.end('c', { passed: false, outcome: 'lost' });
    count.end('d', { passed: false, outcome: 'cancellation' });
    expect(count.read()).toEqual({
      ...{ done: 4, passed: 1, failed: 1, infrastructure: 1, cancelled: 1, skipped: 1 },
      ...{ running: 1, queued: 94, perSecond: 2, etaMs: 47_500, slowest: { id: 'slow', forMs: 2_000 } },
    });
    now += 59_000;
    expect(count.read().perSecond).toBeCloseTo(4 / 60);
    now += 1_000;
    expect(count.read()).toMatchObject({ perSecond: 0, etaMs: undefined });
  });

  test('leaves out what needs the number of tasks when that is unknown', () => {
    const count = new ProgressCount(undefined);
    count.begin('a');
    count.end('a', { passed: true, outcome: 'success' });
    expect(count.read()).toMatchObject({ done: 1, queued: undefined, etaMs: undefined });
  });
});
