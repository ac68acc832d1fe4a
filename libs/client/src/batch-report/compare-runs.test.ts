import { describe, expect, test } from 'vitest';
import type { TaskVerdict } from '../batch/task-result.ts';
import { compareRuns, differenceOf } from './compare-runs.ts';
import { TaskTallies } from './task-tallies.ts';

type Repeat = [verdict: TaskVerdict, runMs?: number, score?: number];

function runOf(tasks: Record<string, Repeat[]>): TaskTallies {
  const tallies = new TaskTallies();
  for (const [task, repeats] of Object.entries(tasks))
    for (const [verdict, runMs = 1_000, score] of repeats) tallies.add({ task, verdict, runMs, score });
  return tallies;
}

const none = { count: 0, greatest: [] };

describe('a comparison of two runs', () => {
  test('has the tasks that newly fail, that newly pass, and those of one run alone', () => {
    const before = runOf({ a: [['passed']], b: [['failed']], c: [['passed']], gone: [['passed']], d: [['failed']] });
    const now = runOf({ a: [['failed']], b: [['passed']], c: [['passed']], new: [['passed']], d: [['failed']] });
    expect(compareRuns(before, now)).toEqual({
      newlyFailing: { count: 1, greatest: [{ task: 'a', before: 1, now: 0 }] },
      newlyPassing: { count: 1, greatest: [{ task: 'b', before: 0, now: 1 }] },
      ...{ unchanged: 2, added: 1, removed: 1, unknown: 0, slower: none, faster: none, scores: none, medianFactor: 1 },
    });
    expect(['a', 'b', 'c', 'new'].map((task) => differenceOf(before.get(task), now.get(task)))).toEqual([
      ...['newly failing', 'newly passing', undefined, undefined],
    ]);
  });

  test('knows nothing of a task that the infrastructure failed or that was cancelled', () => {
    const before = runOf({ a: [['passed']], b: [['infrastructure']], c: [['passed']] });
    const now = runOf({ a: [['infrastructure']], b: [['failed']], c: [['infrastructure'], ['passed']] });
    expect(compareRuns(before, now)).toMatchObject({ newlyFailing: none, unchanged: 1, unknown: 2 });
  });

  test('compares the shares of repeats that passed, the greatest change first', () => {
    const before = runOf({ a: [['passed'], ['passed']], b: [['passed'], ['passed']], c: [['passed'], ['failed']] });
    const now = runOf({ a: [['passed'], ['failed']], b: [['failed']], c: [['failed'], ['passed']] });
    expect(compareRuns(before, now)).toMatchObject({
      newlyFailing: {
        count: 2,
        greatest: [
          { task: 'b', before: 1, now: 0 },
          { task: 'a', before: 1, now: 0.5 },
        ],
      },
      unchanged: 1,
    });
  });

  test('compares times of repeats that passed, when they differ by a quarter and 100 ms', () => {
    const before = runOf({
      a: [['passed', 1_000]],
      b: [['passed', 4_000]],
      c: [['passed', 10]],
      d: [['passed', 1_000]],
    });
    const now = runOf({
      a: [
        ['passed', 2_000],
        ['failed', 9],
      ],
      b: [['passed', 1_000]],
      c: [['passed', 90]],
      d: [['passed', 1_200]],
    });
    expect(compareRuns(before, now)).toMatchObject({
      slower: { count: 1, greatest: [{ task: 'a', before: 1_000, now: 2_000 }] },
      faster: { count: 1, greatest: [{ task: 'b', before: 4_000, now: 1_000 }] },
      medianFactor: 1.6,
    });
  });

  test('compares mean scores, and counts more changes than it keeps', () => {
    const names = Array.from({ length: 300 }, (_, n) => `t${n}`);
    const run = (score: (n: number) => number) =>
      runOf(Object.fromEntries(names.map((name, n): [string, Repeat[]] => [name, [['failed', 1, score(n)]]])));
    const { scores } = compareRuns(
      run(() => 1),
      run((n) => 1 + n),
    );
    expect(scores.count).toBe(299);
    expect(scores.greatest).toHaveLength(50);
    expect(scores.greatest[0]).toEqual({ task: 't299', before: 1, now: 300 });
  });
});
