import type { TaskVerdict } from '../batch/task-result.ts';
import { NumberColumn } from './number-column.ts';
import type { TaskFacts } from './task-facts.ts';

/** Verdicts in the order of their numbers in columns. */
export const VERDICTS = ['passed', 'failed', 'infrastructure', 'cancelled'] as const satisfies TaskVerdict[];

/** One stay on a host, as a bar. Times are in ms since the begin of the timeline. */
export interface TimelineBar {
  /** Line of the host that is free at that time, from 0. */
  lane: number;
  from: number;
  to: number;
  verdict: TaskVerdict;
  /** Place of the task in the results file, from 0. */
  row: number;
}

export interface HostTimeline {
  hostId: string;
  /** Stays on the host. */
  stays: number;
  /** Most stays at one time. */
  most: number;
  /** Sum of the lengths of the stays in ms. */
  busyMs: number;
  /** The stays as bars. Undefined when all hosts together have too many. */
  bars: TimelineBar[] | undefined;
  /** Mean number of stays in each of TIMELINE_BINS equal parts of the time. Undefined when there are bars. */
  load: number[] | undefined;
}

/** When which host worked for the batch. */
export interface Timeline {
  /** Begin in ms since 1970, by the clock of Redis, and length in ms. */
  begin: number;
  lengthMs: number;
  /** The hosts in the order of their ids. */
  hosts: HostTimeline[];
}

/** Bars and lanes that a page can show. With more it shows the load of each host. */
const MOST_BARS = 20_000;
const MOST_LANES = 1_000;

export const TIMELINE_BINS = 240;

/** The stays of all tasks on their hosts, in some 40 bytes each. */
export class HostStays {
  readonly #hostIds = new Map<string, number>();
  readonly #host = new NumberColumn();
  readonly #from = new NumberColumn();
  readonly #to = new NumberColumn();
  readonly #verdict = new NumberColumn();
  readonly #row = new NumberColumn();

  add({ stays, verdict }: Pick<TaskFacts, 'stays' | 'verdict'>, row: number): void {
    for (const { hostId, from, to } of stays) {
      const host = this.#hostIds.get(hostId) ?? this.#hostIds.size;
      this.#hostIds.set(hostId, host);
      this.#host.push(host);
      this.#from.push(from);
      this.#to.push(Math.max(from, to));
      this.#verdict.push(VERDICTS.indexOf(verdict));
      this.#row.push(row);
    }
  }

  /** Returns the timeline, or undefined when no task was on a host. */
  toTimeline(mostBars = MOST_BARS): Timeline | undefined {
    const count = this.#from.length;
    if (count === 0) return undefined;
    let [begin, end] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let index = 0; index < count; index++) {
      begin = Math.min(begin, this.#from.at(index));
      end = Math.max(end, this.#to.at(index));
    }
    const lengthMs = Math.max(1, end - begin);
    const byHost = this.#byHost();
    const showsBars = count <= mostBars && sum(byHost.map(({ most }) => most)) <= MOST_LANES;
    const hosts = byHost.map(({ hostId, indexes, most }) => ({
      ...{ hostId, stays: indexes.length, most },
      busyMs: sum(indexes.map((index) => this.#to.at(index) - this.#from.at(index))),
      bars: showsBars ? this.#barsOf(indexes, begin) : undefined,
      load: showsBars ? undefined : this.#loadOf(indexes, begin, lengthMs),
    }));
    return { begin, lengthMs, hosts: hosts.sort((a, b) => byNumber.compare(a.hostId, b.hostId)) };
  }

  /** Returns the stays of each host in the order of their begin. */
  #byHost(): { hostId: string; indexes: number[]; most: number }[] {
    const byHost = [...this.#hostIds.keys()].map((hostId) => ({ hostId, indexes: [] as number[] }));
    for (let index = 0; index < this.#from.length; index++) byHost[this.#host.at(index)]?.indexes.push(index);
    return byHost.map(({ hostId, indexes }) => {
      indexes.sort((a, b) => this.#from.at(a) - this.#from.at(b));
      return { hostId, indexes, most: this.#mostAtOnce(indexes) };
    });
  }

  #mostAtOnce(indexes: readonly number[]): number {
    const ends = Float64Array.from(indexes, (index) => this.#to.at(index)).sort();
    let [most, ended] = [0, 0];
    for (const [begun, index] of indexes.entries()) {
      while ((ends[ended] ?? Number.POSITIVE_INFINITY) <= this.#from.at(index)) ended++;
      most = Math.max(most, begun + 1 - ended);
    }
    return most;
  }

  #barsOf(indexes: readonly number[], begin: number): TimelineBar[] {
    const ends: number[] = [];
    return indexes.map((index) => {
      const [from, to] = [this.#from.at(index), this.#to.at(index)];
      const free = ends.findIndex((end) => end <= from);
      const lane = free === -1 ? ends.length : free;
      ends[lane] = to;
      const verdict = VERDICTS[this.#verdict.at(index)] ?? 'failed';
      return { lane, from: from - begin, to: to - begin, verdict, row: this.#row.at(index) };
    });
  }

  #loadOf(indexes: readonly number[], begin: number, lengthMs: number): number[] {
    const binMs = lengthMs / TIMELINE_BINS;
    const load = Array.from({ length: TIMELINE_BINS }, () => 0);
    for (const index of indexes) {
      const from = (this.#from.at(index) - begin) / binMs;
      const to = (this.#to.at(index) - begin) / binMs;
      for (let bin = Math.floor(from); bin < Math.min(to, TIMELINE_BINS); bin++)
        load[bin] = (load[bin] ?? 0) + Math.min(to, bin + 1) - Math.max(from, bin);
    }
    return load;
  }
}

/** Orders `host-10` after `host-2`. */
const byNumber = new Intl.Collator('en', { numeric: true });

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
