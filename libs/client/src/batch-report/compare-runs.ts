import { quantile } from './distribution.ts';
import type { TaskDifference } from './page-data.ts';
import type { TaskTallies, TaskTally } from './task-tallies.ts';

/** A number of a task in the earlier run and now. */
export interface TaskChange {
  task: string;
  before: number;
  now: number;
}

/** The changes of one kind: how many, and the greatest of them. */
export interface Changes {
  count: number;
  greatest: TaskChange[];
}

/** What differs from an earlier run. Tasks count that both runs have, and whose end is known in both. */
export interface Comparison {
  /** Tasks that pass less often than before, as shares of their repeats. */
  newlyFailing: Changes;
  /** Tasks that pass more often than before. */
  newlyPassing: Changes;
  /** Tasks that pass as often as before: always, sometimes or never. */
  unchanged: number;
  /** Tasks of this run that the earlier one lacks, and the other way round. */
  added: number;
  removed: number;
  /** Tasks of both runs without a known end in one of them. */
  unknown: number;
  /** Tasks whose commands ran longer, of those that passed in both runs; in ms. */
  slower: Changes;
  faster: Changes;
  /** Median of the factors by which the time of the commands changed. Undefined when no task passed in both runs. */
  medianFactor: number | undefined;
  /** Tasks with another mean score. */
  scores: Changes;
}

/** Changes of a kind that are kept. */
const MOST_KEPT = 50;

/** Least difference of a time that counts as a change: both a quarter and 100 ms. Less is noise. */
const LEAST_FACTOR = 1.25;
const LEAST_MS = 100;

export function compareRuns(before: TaskTallies, now: TaskTallies): Comparison {
  const [failing, passing, slower, faster, scores] = [new Kept(), new Kept(), new Kept(), new Kept(), new Kept()];
  const factors: number[] = [];
  const counts = { unchanged: 0, added: 0, unknown: 0 };
  let both = 0;
  for (const [task, tally] of now.entries()) {
    const earlier = before.get(task);
    if (earlier === undefined) {
      counts.added++;
      continue;
    }
    both++;
    if (earlier.samples === 0 || tally.samples === 0) {
      counts.unknown++;
      continue;
    }
    const rates = { task, before: earlier.passed / earlier.samples, now: tally.passed / tally.samples };
    const difference = differenceOf(earlier, tally);
    if (difference === undefined) counts.unchanged++;
    else (difference === 'newly failing' ? failing : passing).add(rates, Math.abs(rates.now - rates.before));
    const times = meansOf(task, earlier, tally, 'passedRunMs', 'passed');
    if (times !== undefined) addTime(times, slower, faster, factors);
    const means = meansOf(task, earlier, tally, 'score', 'scored');
    if (means !== undefined && means.now !== means.before) scores.add(means, Math.abs(means.now - means.before));
  }
  factors.sort((a, b) => a - b);
  return {
    ...{ newlyFailing: failing.changes, newlyPassing: passing.changes, scores: scores.changes },
    ...{ slower: slower.changes, faster: faster.changes, ...counts, removed: before.size - both },
    medianFactor: factors.length === 0 ? undefined : quantile(factors, 0.5),
  };
}

/** Returns how often a task passes, compared with an earlier run. Undefined when that is the same or not known. */
export function differenceOf(before: TaskTally | undefined, now: TaskTally | undefined): TaskDifference | undefined {
  if (before === undefined || now === undefined || before.samples === 0 || now.samples === 0) return undefined;
  const change = now.passed / now.samples - before.passed / before.samples;
  return change === 0 ? undefined : change < 0 ? 'newly failing' : 'newly passing';
}

function addTime(times: TaskChange, slower: Kept, faster: Kept, factors: number[]): void {
  // A command of less than a millisecond has the time 0.
  const factor = Math.max(1, times.now) / Math.max(1, times.before);
  factors.push(factor);
  if (Math.abs(times.now - times.before) < LEAST_MS) return;
  if (factor >= LEAST_FACTOR) slower.add(times, times.now - times.before);
  if (factor <= 1 / LEAST_FACTOR) faster.add(times, times.before - times.now);
}

function meansOf(
  task: string,
  before: TaskTally,
  now: TaskTally,
  sum: 'passedRunMs' | 'score',
  count: 'passed' | 'scored',
): TaskChange | undefined {
  if (before[count] === 0 || now[count] === 0) return undefined;
  return { task, before: before[sum] / before[count], now: now[sum] / now[count] };
}

/** Counts changes and keeps the greatest. */
class Kept {
  #count = 0;
  #kept: { change: TaskChange; size: number }[] = [];

  add(change: TaskChange, size: number): void {
    this.#count++;
    this.#kept.push({ change, size });
    if (this.#kept.length >= 4 * MOST_KEPT) this.#cut();
  }

  get changes(): Changes {
    this.#cut();
    return { count: this.#count, greatest: this.#kept.map(({ change }) => change) };
  }

  #cut(): void {
    this.#kept = this.#kept.sort((a, b) => b.size - a.size).slice(0, MOST_KEPT);
  }
}
