import { LIMITS } from '@shellfleet/protocol';
import { expect, test } from 'vitest';
import { nextStreamBytes, parseMemory } from './stream-budget.ts';

const full = { usedBytes: 61, mostBytes: 100 };
const easy = { usedBytes: 59, mostBytes: 100 };

test('the limit of a stream is halved while Redis uses more than the share of the fleet, and doubled afterwards', () => {
  const budgets: number[] = [LIMITS.sessionStreamBytes];
  for (const memory of [full, full, easy, easy, easy]) budgets.push(nextStreamBytes(budgets.at(-1) as number, memory));
  const most = LIMITS.sessionStreamBytes;
  expect(budgets).toEqual([most, most / 2, most / 4, most / 2, most, most]);
});

test('no stream is cut below the size that a short command leaves', () => {
  expect(nextStreamBytes(65_536, full)).toBe(65_536);
});

test('a Redis without a memory limit counts as empty', () => {
  const memory = parseMemory('# Memory\r\nused_memory:123\r\nused_memory_rss:9\r\nmaxmemory:0\r\n');
  expect(memory).toEqual({ usedBytes: 123, mostBytes: 0 });
  expect(nextStreamBytes(LIMITS.sessionStreamBytes, memory)).toBe(LIMITS.sessionStreamBytes);
});
