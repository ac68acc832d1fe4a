import { expect, test } from 'vitest';
import type { RowFigures } from './figures.ts';
import { toRatio, toSpread } from './measure/spread.ts';
import { judge } from './targets.ts';

const exactly = (value: number) => toSpread([value]);

/** Every figure of a row: ms, commands/s, µs. */
function row(latencyMs: number, perSecond: number, redisCpuUs: number, workerCpuUs: number): RowFigures {
  const both = { p50: exactly(latencyMs), p99: exactly(latencyMs) };
  const load = {
    commandsPerSecond: exactly(perSecond),
    redisCpuUs: exactly(redisCpuUs),
    producerCpuUs: undefined,
    workerCpuUs: exactly(workerCpuUs),
  };
  return { idle: { true: both, 'echo hi': both }, few: load, many: load };
}

const others = { bullmq: row(1, 3_000, 100, 100), 'docker-exec': row(50, 25, 0, 0) };

function judged(shellfleet: RowFigures, coldMs: number, kilobytes: number, connections: number, rssBytes: number) {
  return judge({
    rows: { ...others, shellfleet },
    sessions: {
      startColdMs: exactly(coldMs),
      redisBytesPerIdleSession: kilobytes * 1_024,
      redisCpuUsPerIdleSession: 1,
      redisCpuUsOfEmptyFleet: 1,
      connections: { worker: 3, producer: 3, unnamed: connections },
      workerRssBytes: rssBytes,
    },
  });
}

test('a figure at its limit passes, and every figure beyond it fails', () => {
  const at = judged(row(1.2, 2_700, 60, 80), 175, 7.2, 0, 200e6);
  expect(at.filter(({ passed }) => !passed)).toEqual([]);
  const beyond = judged(row(2.1, 740, 61, 81), 176, 7.3, 1, 201e6);
  expect(beyond.filter(({ passed }) => passed)).toEqual([]);
  expect(beyond.map(({ id }) => id)).toEqual(at.map(({ id }) => id));
});

test('a target whose row was not measured is not judged', () => {
  const shellfleet = row(1, 3_000, 50, 50);
  const sessions = {
    startColdMs: exactly(150),
    redisBytesPerIdleSession: 7_000,
    redisCpuUsPerIdleSession: 1,
    redisCpuUsOfEmptyFleet: 1,
    connections: { worker: 3, producer: 3, unnamed: 0 },
    workerRssBytes: undefined,
  };
  expect(judge({ rows: { shellfleet }, sessions }).map(({ id }) => id)).toEqual(['connections', 'idle-memory']);
});

test('a ratio is that of the medians, with the range over the rounds', () => {
  expect(toRatio(toSpread([2, 3, 8]), toSpread([1, 2, 1]))).toEqual({ value: 3, min: 1.5, max: 8 });
});
