import { setTimeout as delay } from 'node:timers/promises';
import type { ExtraFigures, Figures, RowFigures } from './figures.ts';
import { measureIdle } from './measure/measure-idle.ts';
import { type LoadFigures, measureLoad } from './measure/measure-load.ts';
import { readRssBytes } from './measure/process-usage.ts';
import type { RedisProbe } from './measure/redis-probe.ts';
import { type Spread, toSpread } from './measure/spread.ts';
import { measureAttachedFlood } from './parts/attached-flood.ts';
import { measureCli } from './parts/cli.ts';
import { measureFloods } from './parts/floods.ts';
import { measureOutput } from './parts/output.ts';
import { measurePeers } from './parts/peers.ts';
import { measureToolCalls } from './parts/tool-calls.ts';
import { measureWarmStarts } from './parts/warm-starts.ts';
import type { Load, Part, Plan } from './plan.ts';
import { type Row, type RowName, SCRIPTS, type Script } from './rows/row.ts';
import type { ShellfleetOptions, ShellfleetRow } from './rows/shellfleet.ts';
import type { WorkerOptions } from './rows/worker-process.ts';

export interface Bench {
  rows: Row[];
  shellfleet: ShellfleetRow;
  /** probe of the Redis that Shellfleet has for itself */
  probe: RedisProbe;
  /** probe of the Redis of the rows without Shellfleet */
  bareProbe: RedisProbe;
  /** Options of the worker with a pool. */
  poolWorker: WorkerOptions;
  /** Options of the row for a flood with an attached reader, and of the worker for tool calls. */
  floodRow: ShellfleetOptions;
  toolWorker: WorkerOptions;
  report(line: string): void;
}

/** Number of sessions that are opened to measure the cost of an idle one, besides those that have run commands. */
export const IDLE_SESSIONS = 100;

/**
 * Takes the figures of a plan. Rows alternate within each round, so that other load on the machine affects all of them
 * equally.
 */
export async function takeFigures(bench: Bench, plan: Plan): Promise<Figures> {
  const { shellfleet, probe, report } = bench;
  const redisCpuUsOfEmptyFleet = await idleCpu(probe, plan.idleSeconds);
  report(`Opening ${plan.few.sessions} sessions`);
  await shellfleet.openSessions(plan.few.sessions);

  for (const row of bench.rows) {
    const { perSession, idle } = plan.warmUp[row.name];
    report(`Warming up: ${row.name}, ${perSession * plan.few.sessions + idle} commands`);
    await warmUp(row, plan);
  }
  const idle = new Collected<{ p50: number; p99: number }>();
  const few = new Collected<LoadFigures>();
  const coldStarts: number[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    report(`Round ${round} of ${plan.rounds}: one command at a time, then ${plan.few.sessions} sessions`);
    for (const row of bench.rows) {
      for (const script of SCRIPTS)
        idle.add(row.name, script, await measureIdle(row, script, plan.idleSamples[row.name]));
      await measure(bench, row, plan.few, few);
    }
    for (let turn = 0; turn < plan.coldStarts; turn++) coldStarts.push(await shellfleet.startCold());
  }

  const idleSessions = plan.quick ? plan.many.sessions : IDLE_SESSIONS;
  report(`Opening ${idleSessions} more sessions`);
  const emptyBytes = await probe.settledMemoryBytes();
  await shellfleet.openSessions(plan.few.sessions + idleSessions);
  const redisBytesPerIdleSession = ((await probe.settledMemoryBytes()) - emptyBytes) / idleSessions;
  const redisCpuUsOfIdleFleet = await idleCpu(probe, plan.idleSeconds);

  const many = new Collected<LoadFigures>();
  for (let round = 1; round <= plan.rounds; round++) {
    report(`Round ${round} of ${plan.rounds}: ${plan.many.sessions} sessions`);
    for (const row of bench.rows) await measure(bench, row, plan.many, many);
  }
  const toRow = ({ name }: Row): [RowName, RowFigures] => [
    name,
    {
      idle: Object.fromEntries(SCRIPTS.map((script) => [script, spreadsOf(idle.of(name, script))])) as Record<
        Script,
        { p50: Spread; p99: Spread }
      >,
      few: loadOf(few.of(name, 'load')),
      many: loadOf(many.of(name, 'load')),
    },
  ];
  const sessions = {
    startColdMs: toSpread(coldStarts),
    redisBytesPerIdleSession,
    redisCpuUsOfEmptyFleet,
    redisCpuUsPerIdleSession: (redisCpuUsOfIdleFleet - redisCpuUsOfEmptyFleet) / (plan.few.sessions + idleSessions),
    connections: await probe.connections(),
    workerRssBytes: await readRssBytes(shellfleet.workerPid),
  };
  return { rows: Object.fromEntries(bench.rows.map(toRow)), sessions, extra: await takeExtra(bench, plan) };
}

/** Measures the other parts after the rows, so that a flood's memory does not count as the worker's. */
async function takeExtra(
  { rows, shellfleet, poolWorker, floodRow, toolWorker, report }: Bench,
  plan: Plan,
): Promise<ExtraFigures> {
  const ifWanted = async <T>(part: Part, measure: () => Promise<T>): Promise<T | undefined> => {
    if (!plan.parts.includes(part)) return undefined;
    report(`Measuring ${part}`);
    return measure();
  };
  const dockerExecCli = rows.find(({ name }) => name === 'docker-exec-cli');
  return {
    startWarmMs: await ifWanted('warm-starts', () => measureWarmStarts(poolWorker, plan.warmStarts)),
    floods: await ifWanted('floods', () => measureFloods(shellfleet, plan.rounds, plan.floods)),
    attachedFlood: await ifWanted('floods', () => measureAttachedFlood(floodRow, plan.floods.attachedBytes)),
    toolCallMs: await ifWanted('tool-calls', () => measureToolCalls(toolWorker, plan.rounds, plan.toolCalls)),
    cli:
      dockerExecCli && (await ifWanted('cli', () => measureCli(shellfleet, dockerExecCli, plan.rounds, plan.cliCalls))),
    output: await ifWanted('output', measureOutput),
    peers: await ifWanted('peers', () => measurePeers(plan.peers, plan.rounds, plan.few.sessions)),
  };
}

/**
 * Warms a row up. In rows with Redis, V8 compiles the pipeline; in all rows, the first commands open files and
 * connections.
 */
async function warmUp(row: Row, { few, warmUp }: Plan): Promise<void> {
  const { perSession, idle } = warmUp[row.name];
  // Warms up with batches of the same size as in the measurement.
  for (let left = perSession; left > 0; ) {
    const batch = Math.min(left, few.perSession[row.name] ?? left);
    await row.many(few.sessions, batch);
    left -= batch;
  }
  for (let turn = 0; turn < idle; turn++) await row.one(SCRIPTS[turn % SCRIPTS.length]!, turn);
}

async function measure(bench: Bench, row: Row, { sessions, perSession }: Load, into: Collected<LoadFigures>) {
  const commands = perSession[row.name];
  if (commands === undefined) return;
  const redis = { shellfleet: bench.probe, bullmq: bench.bareProbe, floor: bench.bareProbe }[row.name as string];
  into.add(row.name, 'load', await measureLoad(row, redis, sessions, commands));
}

/** Returns the microseconds of Redis' processor time per second without requests. */
async function idleCpu(probe: RedisProbe, seconds: number): Promise<number> {
  await delay(500); // writes of the last results may not be finished
  const before = await probe.cpuUs();
  await delay(seconds * 1_000);
  return ((await probe.cpuUs()) - before) / seconds;
}

/** Figures of every round, by row and kind of measurement. */
class Collected<T extends object> {
  readonly #values = new Map<string, T[]>();

  add(row: RowName, what: string, value: T): void {
    this.#values.set(`${row} ${what}`, [...this.of(row, what), value]);
  }

  of(row: RowName, what: string): T[] {
    return this.#values.get(`${row} ${what}`) ?? [];
  }
}

function loadOf(rounds: LoadFigures[]): RowFigures['few'] {
  return rounds.length === 0 ? undefined : spreadsOf(rounds);
}

type Spreads<T> = { [figure in keyof T]: undefined extends T[figure] ? Spread | undefined : Spread };

function spreadsOf<T extends { [figure in keyof T]: number | undefined }>(rounds: T[]): Spreads<T> {
  const names = Object.keys(rounds[0] ?? {}) as (keyof T)[];
  const entries = names.map((name) => {
    const values: (number | undefined)[] = rounds.map((round) => round[name]);
    const found = values.filter((value) => value !== undefined);
    return [name, found.length === 0 ? undefined : toSpread(found)];
  });
  return Object.fromEntries(entries) as Spreads<T>;
}
