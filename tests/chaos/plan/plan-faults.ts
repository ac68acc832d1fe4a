import { createRandom, type Random } from '../../support/random.ts';
import type { FaultKind } from '../check/promises.ts';
import { seedOf } from './operations.ts';

export interface PlannedFault {
  kind: FaultKind;
  /** Time after the start of the load. */
  atMs: number;
  lastsMs: number;
  /** Number from 0 to less than 1 that picks the target among those of that moment. */
  choice: number;
}

/** Shortest and longest duration of a fault. */
type Lengths = readonly [leastMs: number, mostMs: number];
export type Lane = Partial<Record<FaultKind, Lengths>>;

interface LanesPlan {
  lanes: readonly Lane[];
  gapMs: readonly [least: number, most: number];
}

/**
 * Plans every kind of fault once by itself, and then the lanes in parallel until the time is over. Faults of one lane
 * follow each other. A fault is planned only when it ends in time.
 */
export function planFaults(seed: number, { lanes, gapMs }: LanesPlan, totalMs: number): PlannedFault[][] {
  const gap = () => gapMs[0] + random.below(gapMs[1] - gapMs[0] + 1);
  const random = createRandom(seedOf(seed, 'faults'));
  const planned: PlannedFault[][] = lanes.map(() => []);
  const singles = lanes.flatMap((lane, index) => kindsOf(lane).map((kind) => ({ kind, index })));
  let atMs = 1_000;
  for (const { kind, index } of shuffled(random, singles)) {
    const fault = plan(random, lanes[index] as Lane, kind, atMs);
    atMs = fault.atMs + fault.lastsMs + 1_000;
    if (atMs > totalMs) break;
    planned[index]?.push(fault);
  }
  for (const [index, lane] of lanes.entries()) {
    for (let next = atMs + gap(); ; ) {
      const fault = plan(random, lane, random.pick(kindsOf(lane) as [FaultKind]), next);
      next = fault.atMs + fault.lastsMs + gap();
      if (fault.atMs + fault.lastsMs > totalMs) break;
      planned[index]?.push(fault);
    }
  }
  return planned;
}

function plan(random: Random, lane: Lane, kind: FaultKind, atMs: number): PlannedFault {
  const [leastMs, mostMs] = lane[kind] as Lengths;
  return { kind, atMs, lastsMs: leastMs + random.below(mostMs - leastMs + 1), choice: random.next() };
}

const kindsOf = (lane: Lane): FaultKind[] => Object.keys(lane) as FaultKind[];

function shuffled<T>(random: Random, items: T[]): T[] {
  const left = [...items];
  return items.map(() => left.splice(random.below(left.length), 1)[0] as T);
}
