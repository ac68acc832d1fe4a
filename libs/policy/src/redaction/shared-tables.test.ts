import { describe, expect, test } from 'vitest';
import { shareTable } from './shared-tables.ts';
import { PairTable, SPOT } from './spots.ts';

const tableOf = (...pairs: [number, number][]): PairTable => {
  const table = new PairTable();
  for (const [first, second] of pairs) table.add(first, second, SPOT.url);
  return table;
};

describe('shared tables of pairs', () => {
  test('are shared if they are equal, and not if they differ in one pair', () => {
    const first = shareTable(tableOf([1, 2], [3, 4]));
    const other = shareTable(tableOf([1, 2]));
    expect(shareTable(tableOf([1, 2], [3, 4]))).toBe(first);
    expect(shareTable(tableOf([1, 2]))).toBe(other);
    expect(other).not.toBe(first);
  });

  test('stay shared by many sessions while sessions with other secrets come and go', () => {
    const common = shareTable(tableOf([9, 9]));
    for (let secret = 0; secret < 100; secret += 1) {
      shareTable(tableOf([7, secret]));
      expect(shareTable(tableOf([9, 9]))).toBe(common);
    }
  });
});
