import { describe, expect, test } from 'vitest';
import { IdSet } from './id-set.ts';

describe('set of ids', () => {
  test('has exactly the ids that were added, through many growths', () => {
    const set = new IdSet();
    const ids = Array.from({ length: 20_000 }, (_, index) => `task-${index}`);
    expect(ids.every((id) => set.add(id))).toBe(true);
    expect(ids.some((id) => set.add(id))).toBe(false);
    expect(ids.every((id) => set.has(id))).toBe(true);
    expect(ids.some((id) => set.has(`${id}#1`))).toBe(false);
    expect(set.size).toBe(ids.length);
  });
});
