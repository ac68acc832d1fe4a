import type { TaskResult, TaskVerdict } from '../batch/task-result.ts';
import { causeOf, type FailureCause, lastLinesOf } from './failure-cause.ts';
import type { TaskFacts } from './task-facts.ts';

/** Tasks that did not pass for one cause. */
export interface CauseGroup extends FailureCause {
  /** Number by which listed tasks name their cause. */
  index: number;
  verdict: TaskVerdict;
  count: number;
  /** Number of tasks by host. Tasks without a host are left out. */
  hosts: Map<string, number>;
  /** Tasks with different last lines. */
  samples: { id: string; text: string }[];
}

const MOST_SAMPLES = 3;

/** Groups by their last line. Further causes differ by their title alone. */
const MOST_BY_LINE = 1_000;

/** Groups tasks by cause. */
export class CauseGroups {
  readonly #groups = new Map<string, CauseGroup>();

  /** Adds a task that did not pass. Returns the number of its cause, and the last lines. */
  add(result: TaskResult, { id, verdict, hostId }: TaskFacts): { cause: number; text: string } {
    const group = this.#groupOf(causeOf(result), verdict);
    const text = lastLinesOf(result);
    group.count++;
    if (hostId !== undefined) group.hosts.set(hostId, (group.hosts.get(hostId) ?? 0) + 1);
    const isKnown = group.samples.some((sample) => sample.text === text);
    if (!isKnown && group.samples.length < MOST_SAMPLES) group.samples.push({ id, text });
    return { cause: group.index, text };
  }

  /** Returns the groups, the largest first. */
  get groups(): CauseGroup[] {
    return [...this.#groups.values()].sort((a, b) => b.count - a.count);
  }

  #groupOf(cause: FailureCause, verdict: TaskVerdict): CauseGroup {
    const keyOf = ({ title, line }: FailureCause) => `${verdict}\n${title}\n${line}`;
    const isFull = this.#groups.size >= MOST_BY_LINE && !this.#groups.has(keyOf(cause));
    const shown = isFull ? { title: cause.title, line: 'other last lines' } : cause;
    const known = this.#groups.get(keyOf(shown));
    if (known !== undefined) return known;
    const group = { ...shown, index: this.#groups.size, verdict, count: 0, hosts: new Map(), samples: [] };
    this.#groups.set(keyOf(shown), group);
    return group;
  }
}
