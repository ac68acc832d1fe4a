import { LIMITS } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { nextStreamBytes, parseMemory } from './stream-budget.ts';

const full = { usedBytes: 61, mostBytes: 100 };
const easy = { usedBytes: 59, mostBytes: 100 };

describe('the byte limit of streams', () => {
  test('is halved while Redis uses more than its share, and doubled afterwards', () => {
    const budgets: number[] = [LIMITS.sessionStreamBytes];
    for (const memory of [full, full, easy, easy, easy])
      budgets.push(nextStreamBytes(budgets.at(-1) as number, memory));
    const most = LIMITS.sessionStreamBytes;
    expect(budgets).toEqual([most, most / 2, most / 4, most / 2, most, most]);
  });

  test('stays above the size that a short command leaves', () => {
    expect(nextStreamBytes(65_536, full)).toBe(65_536);
  });

  test('treats a Redis without a memory limit as empty', () => {
    const memory = parseMemory('# Memory\r\nused_memory:123\r\nused_memory_rss:9\r\nmaxmemory:0\r\n');
    expect(memory).toEqual({ usedBytes: 123, mostBytes: 0 });
    expect(nextStreamBytes(LIMITS.sessionStreamBytes, memory)).toBe(LIMITS.sessionStreamBytes);
  });
});
