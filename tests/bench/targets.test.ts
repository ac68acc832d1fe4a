import { describe, expect, test } from 'vitest';
import type { ExtraFigures, RowFigures } from './figures.ts';
import { toRatio, toSpread } from './measure/spread.ts';
import { exactly, noExtra, rate, sampleExtra, sampleRow, sampleSessions } from './sample-figures.ts';
import { checkTargets } from './targets.ts';

const others = {
  bullmq: sampleRow(1, 3_000, 100, 100),
  'docker-exec': sampleRow(50, 25, 0, 0),
  'docker-attach': sampleRow(0.3, 4_250, 0, 0),
};

function checked(
  shellfleet: RowFigures,
  coldMs: number,
  kilobytes: number,
  connections: number,
  rssBytes: number,
  extra: ExtraFigures,
) {
  const sessions = sampleSessions({
    startColdMs: exactly(coldMs),
    redisBytesPerIdleSession: kilobytes * 1_024,
    connections: { worker: 3, producer: 3, unnamed: connections },
    workerRssBytes: rssBytes,
  });
  return checkTargets({ rows: { ...others, shellfleet }, sessions, extra });
}

describe('the targets', () => {
  test('pass a figure at its limit, and fail every figure beyond it', () => {
    const at = checked(sampleRow(1.7, 2_550, 60, 110), 110, 5, 0, 200e6, sampleExtra());
    expect(at.filter(({ passed }) => !passed)).toEqual([]);
    const beyond = checked(sampleRow(2.1, 740, 61, 111), 111, 5.1, 1, 201e6, {
      startWarmMs: exactly(26),
      floods: { besideMs: exactly(4), duringMs: exactly(8.1), megabytesPerSecond: exactly(80), bytes: 1e6 },
      attachedFlood: { growthBytes: 101e6, megabytesPerSecond: 60, bytes: 4e9 },
      toolCallMs: exactly(56),
      cli: { execMs: exactly(66), dockerExecMs: exactly(50), nodeMs: exactly(25) },
      output: {
        chain: { yes: rate(200), numbers: rate(99) },
        hostile: { 'bearer headers': rate(90), slashes: rate(19) },
      },
      peers: undefined,
    });
    expect(beyond.filter(({ passed }) => passed)).toEqual([]);
    expect(beyond.map(({ id }) => id)).toEqual(at.map(({ id }) => id));
  });

  test('do not apply to a row that was not measured', () => {
    const shellfleet = sampleRow(1, 3_000, 50, 50);
    const sessions = sampleSessions({ workerRssBytes: undefined });
    expect(checkTargets({ rows: { shellfleet }, sessions, extra: noExtra }).map(({ id }) => id)).toEqual([
      'start-cold',
      'connections',
      'idle-memory',
    ]);
  });

  test('take the ratio of the medians, with the range over the rounds', () => {
    expect(toRatio(toSpread([2, 3, 8]), toSpread([1, 2, 1]))).toEqual({ value: 3, min: 1.5, max: 8 });
  });
});
