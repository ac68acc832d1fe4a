import type { TaskTally } from './task-tallies.ts';

/** Estimated share of tasks of which at least one of k repeats passes. */
export interface PassAtK {
  k: number;
  /** Mean over the tasks, 0 to 1. */
  estimate: number;
  /** Tasks with at least k samples. Others do not count. */
  tasks: number;
}

/** How many tasks passed in all their repeats, in some, and in none. Tasks without a sample do not count. */
export interface Consistency {
  always: number;
  sometimes: number;
  never: number;
}

/**
 * Returns the probability that at least one of k samples passes, when `passed` of `samples` did, by the estimator
 * without bias: 1 − C(n−c, k) / C(n, k). Undefined with less than k samples.
 */
function estimatePassAtK(samples: number, passed: number, k: number): number | undefined {
  if (k > samples) return undefined;
  let noneOf = 1;
  for (let failed = samples - passed, left = samples, step = 0; step < k; step++, failed--, left--) {
    if (failed <= 0) return 1;
    noneOf *= failed / left;
  }
  return 1 - noneOf;
}

/** Returns pass@k for each k of 1, 2, 5, 10, 20, … up to the most samples of a task, and for that. */
export function passAtKOf(tallies: Iterable<TaskTally>): PassAtK[] {
  // Tasks with as many samples, of which as many passed, have the same estimate.
  const alike = new Map<string, TaskTally & { tasks: number }>();
  let most = 0;
  for (const tally of tallies) {
    const key = `${tally.samples}/${tally.passed}`;
    const known = alike.get(key);
    if (known === undefined) alike.set(key, { ...tally, tasks: 1 });
    else known.tasks++;
    most = Math.max(most, tally.samples);
  }
  return stepsUpTo(most).map((k) => {
    const sums = { tasks: 0, estimates: 0 };
    for (const { samples, passed, tasks } of alike.values()) {
      const estimate = estimatePassAtK(samples, passed, k);
      if (estimate === undefined) continue;
      sums.tasks += tasks;
      sums.estimates += estimate * tasks;
    }
    return { k, estimate: sums.estimates / sums.tasks, tasks: sums.tasks };
  });
}

function stepsUpTo(most: number): number[] {
  const steps: number[] = [];
  for (let power = 1; power <= most; power *= 10) steps.push(power, 2 * power, 5 * power);
  return [...new Set([...steps.filter((step) => step < most), ...(most > 0 ? [most] : [])])];
}

export function consistencyOf(tallies: Iterable<TaskTally>): Consistency {
  const counts = { always: 0, sometimes: 0, never: 0 };
  for (const { samples, passed } of tallies) {
    if (samples === 0) continue;
    counts[passed === samples ? 'always' : passed === 0 ? 'never' : 'sometimes']++;
  }
  return counts;
}
