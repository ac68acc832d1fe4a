import type { LoadFigures } from './measure/measure-load.ts';
import type { Spread } from './measure/spread.ts';
import type { AttachedFloodFigures } from './parts/attached-flood.ts';
import type { CliFigures } from './parts/cli.ts';
import type { FloodFigures } from './parts/floods.ts';
import type { OutputFigures } from './parts/output.ts';
import type { PeerFigures } from './parts/peers.ts';
import type { RowName, Script } from './rows/row.ts';

/** Figures of one row, over all rounds. */
export interface RowFigures {
  /** latency of one command at a time, in milliseconds */
  idle: Record<Script, { p50: Spread; p99: Spread }>;
  /** load of `echo hi` in a few sessions, and in many; undefined where the row is not measured in this way */
  few: LoadSpreads | undefined;
  many: LoadSpreads | undefined;
}

/** Spreads of the load's figures. A figure is undefined when the row has no Redis, or no worker process of its own. */
export type LoadSpreads = { [figure in keyof LoadFigures]: Spread | undefined };

/** Figures that only Shellfleet has. */
interface SessionFigures {
  startColdMs: Spread;
  redisBytesPerIdleSession: number;
  /** microseconds of Redis' processor time per second, without those of an empty fleet */
  redisCpuUsPerIdleSession: number;
  redisCpuUsOfEmptyFleet: number;
  connections: { worker: number; producer: number; unnamed: number };
  workerRssBytes: number | undefined;
}

/** Figures of the parts besides the rows. A part that was not measured is undefined. */
export interface ExtraFigures {
  startWarmMs: Spread | undefined;
  floods: FloodFigures | undefined;
  attachedFlood: AttachedFloodFigures | undefined;
  toolCallMs: Spread | undefined;
  cli: CliFigures | undefined;
  output: OutputFigures | undefined;
  peers: readonly PeerFigures[] | undefined;
}

export interface Figures {
  /** figures by row; rows that were not measured are left out */
  rows: Partial<Record<RowName, RowFigures>>;
  sessions: SessionFigures;
  extra: ExtraFigures;
}
