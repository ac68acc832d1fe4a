import type { ExtraFigures, Figures, RowFigures } from './figures.ts';
import { type Ratio, type Spread, toSpread } from './measure/spread.ts';
import { ROW_NAMES } from './rows/row.ts';

// Figures for tests.

export const exactly = (value: number): Spread => toSpread([value]);

export const rate = (value: number): Ratio => ({ value, min: value, max: value });

/** Returns a row in which each kind of figure is the same everywhere: ms, commands/s, µs. */
export function sampleRow(latencyMs: number, perSecond: number, redisCpuUs: number, workerCpuUs: number): RowFigures {
  const both = { p50: exactly(latencyMs), p99: exactly(latencyMs) };
  const load = {
    commandsPerSecond: exactly(perSecond),
    redisCpuUs: exactly(redisCpuUs),
    producerCpuUs: exactly(70),
    workerCpuUs: exactly(workerCpuUs),
  };
  return { idle: { true: both, 'echo hi': both }, few: load, many: load };
}

export function sampleSessions(changed: Partial<Figures['sessions']> = {}): Figures['sessions'] {
  return {
    startColdMs: exactly(150),
    redisBytesPerIdleSession: 7_000,
    redisCpuUsPerIdleSession: 1,
    redisCpuUsOfEmptyFleet: 1,
    connections: { worker: 3, producer: 3, unnamed: 0 },
    workerRssBytes: 150e6,
    ...changed,
  };
}

export function sampleExtra(): ExtraFigures {
  return {
    startWarmMs: exactly(25),
    floods: { besideMs: exactly(4), duringMs: exactly(8), megabytesPerSecond: exactly(80), bytes: 1e6 },
    attachedFlood: { growthBytes: 100e6, megabytesPerSecond: 60, bytes: 4e9 },
    toolCallMs: exactly(55),
    cli: { execMs: exactly(65), dockerExecMs: exactly(50), nodeMs: exactly(25) },
    output: { chain: { yes: rate(200), numbers: rate(100) }, hostile: { 'bearer headers': rate(20) } },
    peers: [{ name: 'execa', idle: sampleRow(4, 250, 0, 0).idle, commandsPerSecond: exactly(250) }],
  };
}

export const noExtra: ExtraFigures = {
  startWarmMs: undefined,
  floods: undefined,
  attachedFlood: undefined,
  toolCallMs: undefined,
  cli: undefined,
  output: undefined,
  peers: undefined,
};

/** Returns figures of every row, each slower than the one before it. */
export function sampleFigures(): Figures {
  const rows = ROW_NAMES.map((name, index) => [name, sampleRow(0.2 * 2 ** index, 8_000 / 2 ** index, 50, 60)]);
  return { rows: Object.fromEntries(rows), sessions: sampleSessions(), extra: sampleExtra() };
}
