import type { TaskFacts } from './task-facts.ts';

/** What the repeats of one task came to. Repeats that the infrastructure failed or that were cancelled do not count. */
export interface TaskTally {
  /** Repeats that passed or failed. */
  samples: number;
  passed: number;
  /** Sum of the times in ms for which the commands of the repeats that passed ran. */
  passedRunMs: number;
  /** Sum of the scores, and their number. */
  score: number;
  scored: number;
}

/** The tallies of a batch by task. */
export class TaskTallies {
  readonly #tallies = new Map<string, TaskTally>();

  add({ task, verdict, runMs, score }: Pick<TaskFacts, 'task' | 'verdict' | 'runMs' | 'score'>): void {
    let tally = this.#tallies.get(task);
    if (tally === undefined) {
      tally = { samples: 0, passed: 0, passedRunMs: 0, score: 0, scored: 0 };
      this.#tallies.set(task, tally);
    }
    if (verdict !== 'passed' && verdict !== 'failed') return;
    tally.samples++;
    if (verdict === 'passed') {
      tally.passed++;
      tally.passedRunMs += runMs;
    }
    if (score === undefined) return;
    tally.score += score;
    tally.scored++;
  }

  get size(): number {
    return this.#tallies.size;
  }

  get(task: string): TaskTally | undefined {
    return this.#tallies.get(task);
  }

  entries(): Iterable<[string, TaskTally]> {
    return this.#tallies.entries();
  }

  values(): Iterable<TaskTally> {
    return this.#tallies.values();
  }
}
