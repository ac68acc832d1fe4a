import { describe, expect, test } from 'vitest';
import { operationsOf } from './operations.ts';
import { planFaults } from './plan-faults.ts';
import { ROUND_KINDS } from './rounds.ts';

describe('the plan of a round', () => {
  test.each(ROUND_KINDS)('has the same faults for the same seed, and other faults for another seed: $name', (kind) => {
    expect(planFaults(1, kind, 60_000)).toEqual(planFaults(1, kind, 60_000));
    expect(planFaults(1, kind, 60_000)).not.toEqual(planFaults(2, kind, 60_000));
  });

  test.each(ROUND_KINDS)('has every kind of fault in a minute, each ending in time: $name', (kind) => {
    const planned = planFaults(3, kind, 60_000).flat();
    const kinds = kind.lanes.flatMap((lane) => Object.keys(lane));
    expect([...new Set(planned.map((fault) => fault.kind))].sort()).toEqual(kinds.sort());
    expect(planned.filter(({ atMs, lastsMs }) => atMs + lastsMs > 60_000)).toEqual([]);
  });

  test('kills one host and freezes another beyond its lease in the short round', () => {
    const kind = ROUND_KINDS.find(({ name }) => name === 'lost hosts');
    const { seed, seconds } = kind?.inTests ?? { seed: 0, seconds: 0 };
    const planned = kind === undefined ? [] : planFaults(seed, kind, seconds * 1_000).flat();
    expect(planned.map((fault) => fault.kind)).toEqual(expect.arrayContaining(['host-dead', 'host-asleep']));
  });

  test('has the same commands for the same seed, and other commands in each session', () => {
    const first = (seed: number, session: string) => operationsOf(seed, session).take(50).toArray();
    expect(first(1, 's')).toEqual(first(1, 's'));
    expect(first(1, 's')).not.toEqual(first(2, 's'));
    expect(first(1, 's').map(({ reader }) => reader)).not.toEqual(first(1, 't').map(({ reader }) => reader));
  });
});
