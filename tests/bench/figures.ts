import type { LoadFigures } from './measure/measure-load.ts';
import type { Spread } from './measure/spread.ts';
import type { CliFigures } from './parts/cli.ts';
import type { FloodFigures } from './parts/floods.ts';
import type { OutputFigures } from './parts/output.ts';
import type { RowName, Script } from './rows/row.ts';

/** The figures of one row, over all rounds. */
export interface RowFigures {
  /** milliseconds, one command at a time */
  idle: Record<Script, { p50: Spread; p99: Spread }>;
  /** `echo hi` in a few sessions, and in many; undefined where the row is not measured so */
  few: LoadSpreads | undefined;
  many: LoadSpreads | undefined;
}

/** `undefined` where there is nothing to measure: no Redis, or no worker process of the row. */
export type LoadSpreads = { [figure in keyof LoadFigures]: Spread | undefined };

/** Figures that only Shellfleet has. */
interface SessionFigures {
  startColdMs: Spread;
  redisBytesPerIdleSession: number;
  /** microseconds of Redis' processor time in a second, less those of an empty fleet */
  redisCpuUsPerIdleSession: number;
  redisCpuUsOfEmptyFleet: number;
  connections: { worker: number; producer: number; unnamed: number };
  workerRssBytes: number | undefined;
}

/** Undefined where a part was not measured. */
export interface ExtraFigures {
  floods: FloodFigures | undefined;
  toolCallMs: Spread | undefined;
  cli: CliFigures | undefined;
  output: OutputFigures | undefined;
}

export interface Figures {
  /** without the rows that were not measured */
  rows: Partial<Record<RowName, RowFigures>>;
  sessions: SessionFigures;
  extra: ExtraFigures;
}
