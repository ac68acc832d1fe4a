import type { TaskResult, TaskVerdict } from '../batch/task-result.ts';
import { type CauseGroup, CauseGroups } from './cause-groups.ts';
import { type Comparison, compareRuns, differenceOf } from './compare-runs.ts';
import { type Distribution, distributionOf } from './distribution.ts';
import { ListedTasks } from './listed-tasks.ts';
import { NumberColumn } from './number-column.ts';
import { type Consistency, consistencyOf, type PassAtK, passAtKOf } from './pass-at-k.ts';
import { factsOf, type TaskFacts } from './task-facts.ts';
import { TaskTallies } from './task-tallies.ts';
import { HostStays, type Timeline } from './timeline.ts';

/** What a report shows of all tasks with a value. */
const MEASURES = [
  'durationMs',
  'queueMs',
  'runMs',
  'restMs',
  'cpuMs',
  'peakMemoryBytes',
  'outputBytes',
] as const satisfies (keyof TaskFacts)[];
export type Measure = (typeof MEASURES)[number];

/** Everything that a report shows, as numbers and texts. */
export interface ReportNumbers {
  counts: Record<TaskVerdict, number>;
  tasks: number;
  /** Begin of the first task and end of the last, in ms since 1970 by the clock of the batch. */
  begin: number;
  end: number;
  measures: { [measure in Measure]: Distribution | undefined };
  causes: CauseGroup[];
  /** Numbers about the repeats of tasks. Undefined when no task was repeated. */
  repeats: { passAtK: PassAtK[]; consistency: Consistency; tasks: number } | undefined;
  comparison: Comparison | undefined;
  timeline: Timeline | undefined;
  listed: ListedTasks;
}

/** Collects the results of a batch for a report, of which a million take some hundred MB. */
export class ReportCollector {
  readonly #counts: Record<TaskVerdict, number> = { passed: 0, failed: 0, infrastructure: 0, cancelled: 0 };
  readonly #columns = new Map(MEASURES.map((measure) => [measure, new NumberColumn()]));
  readonly #causes = new CauseGroups();
  readonly #stays = new HostStays();
  readonly #listed: ListedTasks;
  readonly #tallies = new TaskTallies();
  readonly #before: TaskTallies | undefined;
  #isRepeated = false;
  #begin = Number.POSITIVE_INFINITY;
  #end = Number.NEGATIVE_INFINITY;

  /** `before` has the results of an earlier run. */
  constructor(before: TaskTallies | undefined, listed = new ListedTasks()) {
    this.#before = before;
    this.#listed = listed;
  }

  add(result: TaskResult): void {
    const facts = factsOf(result);
    this.#counts[facts.verdict]++;
    for (const [measure, column] of this.#columns) {
      const value = facts[measure];
      if (value !== undefined) column.push(value);
    }
    this.#begin = Math.min(this.#begin, facts.startedAt);
    this.#end = Math.max(this.#end, facts.startedAt + facts.durationMs);
    if (result.repeat > 1) this.#isRepeated = true;
    // Only a comparison and repeats need something of every task.
    if (this.#before !== undefined || result.id !== result.task) this.#tallies.add(facts);
    this.#stays.add(facts, this.#listed.count);
    const end = facts.verdict === 'passed' ? { cause: -1 } : this.#causes.add(result, facts);
    const { id, task, verdict, hostId = '', startedAt, durationMs, queueMs, runMs, outputBytes, attempts } = facts;
    this.#listed.add({
      ...{ id, task, verdict, hostId, startMs: startedAt, durationMs, queueMs, runMs, outputBytes, attempts },
      ...{ cpuMs: facts.cpuMs ?? null, peakMemoryBytes: facts.peakMemoryBytes ?? null, score: facts.score ?? null },
      ...end,
    });
  }

  end(): ReportNumbers {
    const measures = [...this.#columns].map(([measure, column]) => [measure, distributionOf(column)]);
    for (const { task } of this.#listed.tasks) {
      task.startMs -= this.#begin;
      const change = differenceOf(this.#before?.get(task.task), this.#tallies.get(task.task));
      if (change !== undefined) task.change = change;
    }
    const tasks = Object.values(this.#counts).reduce((sum, count) => sum + count, 0);
    return {
      ...{ counts: this.#counts, tasks, causes: this.#causes.groups, listed: this.#listed },
      ...(tasks === 0 ? { begin: 0, end: 0 } : { begin: this.#begin, end: this.#end }),
      measures: Object.fromEntries(measures) as ReportNumbers['measures'],
      repeats: this.#isRepeated ? this.#repeats() : undefined,
      comparison: this.#before && compareRuns(this.#before, this.#tallies),
      timeline: this.#stays.toTimeline(),
    };
  }

  #repeats(): ReportNumbers['repeats'] {
    const tallies = this.#tallies;
    return { passAtK: passAtKOf(tallies.values()), consistency: consistencyOf(tallies.values()), tasks: tallies.size };
  }
}
