import { describe, expect, test } from 'vitest';
import { distributionOf, quantile } from './distribution.ts';
import { formatBytes, formatCount, formatEdgeMs, formatMs, formatShare } from './format.ts';
import { NumberColumn } from './number-column.ts';
import { consistencyOf, passAtKOf } from './pass-at-k.ts';
import type { TaskTally } from './task-tallies.ts';

function columnOf(values: readonly number[]): NumberColumn {
  const column = new NumberColumn();
  for (const value of values) column.push(value);
  return column;
}

const tally = (samples: number, passed: number): TaskTally => ({
  samples,
  passed,
  passedRunMs: 0,
  score: 0,
  scored: 0,
});

describe('a quantile', () => {
  test('is interpolated between the two values next to it', () => {
    expect([0, 0.5, 0.9, 1].map((share) => quantile([10, 20, 30, 40], share))).toEqual([10, 25, 37, 40]);
    expect(quantile([7], 0.99)).toBe(7);
  });
});

describe('a distribution', () => {
  test('is undefined without a value', () => {
    expect(distributionOf(new NumberColumn())).toBeUndefined();
  });

  test('has quantiles, mean and sum of the values in any order', () => {
    const values = Array.from({ length: 1_001 }, (_, index) => (index * 617) % 1_001);
    expect(distributionOf(columnOf(values))).toMatchObject({
      ...{ count: 1_001, sum: 500_500, mean: 500, least: 0, median: 500, p90: 900, p99: 990, most: 1_000 },
    });
  });

  test.each([
    ['equal values', [5, 5, 5]],
    ['zeros alone', [0, 0]],
    ['one value', [0.3]],
    ['values near each other', [1_000, 1_001, 1_002, 1_003]],
    ['zero and a long tail', [0, 0, 1, 2, 3, 90_000, 1_000_000]],
    ['many powers of ten', [0.0001, 1, 1e9]],
    ['a value at a power of ten', [1, 2, 3, 1_000]],
  ])('has each of %s in one bin whose edges surround it', (_, values) => {
    const { bins = [] } = distributionOf(columnOf(values)) ?? {};
    expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(values.length);
    expect(bins.length).toBeLessThanOrEqual(32);
    for (const [index, { from, to, count }] of bins.entries()) {
      expect(bins[index + 1]?.from ?? to).toBe(to);
      const isLast = index === bins.length - 1;
      const inside = values.filter((value) => value >= from && (isLast ? value <= to : value < to));
      expect(count, `${from} to ${to}`).toBe(inside.length);
    }
  });

  test('has bins of one round width, or wider ones for a long tail', () => {
    const narrow = distributionOf(columnOf([100, 180, 260]));
    expect(narrow?.isLogarithmic).toBe(false);
    expect(new Set(narrow?.bins.map(({ from, to }) => to - from))).toEqual(new Set([10]));
    const wide = distributionOf(columnOf([...Array.from({ length: 99 }, () => 100), 10_000]));
    expect(wide?.isLogarithmic).toBe(true);
    expect(wide?.bins.at(0)).toEqual({ from: 100, to: 125, count: 99 });
    expect(wide?.bins.at(-1)).toEqual({ from: 8_000, to: 10_000, count: 1 });
  });
});

describe('pass@k', () => {
  test('is the share of all choices of k repeats with one that passed', () => {
    // The first task has 10 pairs of repeats, 3 of them without a pass; the second has 6 pairs, none with a pass.
    expect(passAtKOf([tally(5, 2), tally(4, 0)])).toEqual([
      { k: 1, estimate: (0.4 + 0) / 2, tasks: 2 },
      { k: 2, estimate: expect.closeTo((0.7 + 0) / 2, 12), tasks: 2 },
      { k: 5, estimate: 1, tasks: 1 },
    ]);
  });

  test('leaves out tasks with less than k samples', () => {
    expect(passAtKOf([tally(1, 1), tally(0, 0), tally(3, 0)])).toEqual([
      { k: 1, estimate: 0.5, tasks: 2 },
      { k: 2, estimate: 0, tasks: 1 },
      { k: 3, estimate: 0, tasks: 1 },
    ]);
    expect(passAtKOf([])).toEqual([]);
  });

  test('stays exact for thousands of repeats', () => {
    const points = passAtKOf([tally(10_000, 1)]);
    for (const { k, estimate } of points) expect(estimate).toBeCloseTo(k / 10_000, 9);
    expect(points.at(-1)).toEqual({ k: 10_000, estimate: 1, tasks: 1 });
  });
});

describe('tasks with repeats', () => {
  test('are counted by how often they pass', () => {
    const tallies = [tally(3, 3), tally(3, 2), tally(1, 0), tally(0, 0)];
    expect(consistencyOf(tallies)).toEqual({ always: 1, sometimes: 1, never: 1 });
  });
});

describe('a number in a report', () => {
  test.each([
    [
      formatMs,
      [0, 4.25, 820, 1_240, 12_400, 200_000, 7_500_000],
      '0 ms|4.3 ms|820 ms|1.24 s|12.4 s|3 min 20 s|2 h 05 min',
    ],
    [formatMs, [999.7, 59_960, 3_599_700], '1.00 s|1 min 00 s|1 h 00 min'],
    [formatEdgeMs, [0, 0.5, 200, 2_000, 200_000, 900_000, 7_200_000], '0 ms|0.5 ms|200 ms|2 s|200 s|15 min|2 h'],
    [formatBytes, [0, 999, 1_500, 20_000_000, 1e15], '0 B|999 B|1.5 kB|20 MB|1 PB'],
    [formatCount, [0, 999, 10_000, 1_234_567], '0|999|10,000|1,234,567'],
    [formatShare, [0, 1, 0.5, 0.99999, 0.00001], '0 %|100 %|50.0 %|99.9 %|0.1 %'],
  ] as const)('is written by $name in words that a person reads', (format, values, expected) => {
    expect(values.map((value) => format(value)).join('|')).toBe(expected);
  });
});
