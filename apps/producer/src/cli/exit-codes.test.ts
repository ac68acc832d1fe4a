import { describe, expect, test } from 'vitest';
import { exitCodeOfBatch } from './exit-codes.ts';

describe('the exit code of a batch', () => {
  test('is 1 when a failure ended it, whatever it counts', () => {
    expect(exitCodeOfBatch({ totals: { tasks: 1, skipped: 0, passed: 1 }, stoppedBy: 'failure' })).toBe(1);
  });
});
