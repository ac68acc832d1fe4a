import type { BatchProgress, TaskResult } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { describeProgress, describeTask } from './batch-line.ts';

const progress: BatchProgress = {
  ...{ done: 12, passed: 9, failed: 2, infrastructure: 1, cancelled: 0, skipped: 3, running: 4, queued: 81 },
  ...{ perSecond: 0.52, etaMs: 163_400, slowest: { id: 'a', forMs: 45_300 } },
};

describe('the line about a batch', () => {
  test('has counts, rate, time left and the slowest task', () => {
    expect(describeProgress(progress)).toBe(
      '15 of 100 tasks: 9 passed, 2 failed, 1 infrastructure, 4 running, 81 queued · 0.5/s · 2 min 43 s left · slowest a 45 s',
    );
  });

  test('leaves out what is not known', () => {
    const unknown = { queued: undefined, etaMs: undefined, slowest: undefined, perSecond: 20, cancelled: 2 };
    expect(describeProgress({ ...progress, ...unknown })).toBe(
      '15 tasks: 9 passed, 2 failed, 1 infrastructure, 2 cancelled, 4 running · 20/s',
    );
  });
});

describe('the line about a task', () => {
  test('tells that its grade timed out', () => {
    const result = { id: 'a', outcome: 'success', passed: false, score: 0, grade: { outcome: 'timeout' } };
    expect(describeTask({ ...result, results: [{ exitCode: 0 }], durationMs: 7 } as unknown as TaskResult)).toBe(
      'a  success  exit 0  not passed (timeout), score 0  7 ms',
    );
  });

  test('has its grade, and no control character of its id', () => {
    const result = { id: 'a\u001b[2J', outcome: 'failure', passed: true, score: 0.5, grade: {}, durationMs: 7 };
    expect(describeTask({ ...result, results: [{ exitCode: 3 }] } as TaskResult)).toBe(
      'a\\u001b[2J  failure  exit 3  passed, score 0.5  7 ms',
    );
  });
});
