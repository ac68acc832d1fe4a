import { describe, expect, test } from 'vitest';
import { FindingList, placesOf } from './finding-list.ts';
import type { Rule } from './source.ts';

const rule = (type: string, rank: number): Rule => ({ type, strategy: 'redact', rank });
const [first, second] = [rule('first', 1), rule('second', 2)];

describe('the list of findings', () => {
  test('joins overlapping findings to one span, in whatever order they were found', () => {
    const findings = new FindingList();
    findings.found(second, 16, 16, 20);
    findings.found(first, 0, 0, 3);
    findings.found(first, 5, 5, 9);
    findings.found(second, 3, 3, 5);
    findings.found(second, 8, 8, 17);
    expect(findings.spans().map(({ from, end, findings: { length } }) => [from, end, length])).toEqual([
      [0, 3, 1],
      [3, 5, 1],
      [5, 20, 3],
    ]);
  });

  test('joins findings of a span whose replaced parts overlap to one replacement', () => {
    const findings = new FindingList();
    findings.found(first, 0, 6, 9);
    findings.found(second, 2, 2, 5);
    findings.found(second, 8, 8, 12);
    const [span] = findings.spans();
    expect(placesOf(span!).map((place) => place.map(({ start, end }) => [start, end]))).toEqual([
      [[2, 5]],
      [
        [6, 9],
        [8, 12],
      ],
    ]);
  });

  test('keeps the earliest open start, with the strongest rule that reported it', () => {
    const findings = new FindingList();
    findings.open(second, 7);
    findings.open(second, 4);
    findings.open(first, 4);
    findings.open(first, 5);
    expect([findings.openAt, findings.openRule]).toEqual([4, first]);
    findings.clear();
    expect([findings.openAt, findings.openRule, findings.spans()]).toEqual([Number.POSITIVE_INFINITY, undefined, []]);
  });
});
