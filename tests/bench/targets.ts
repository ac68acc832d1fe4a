import type { Figures, RowFigures } from './figures.ts';
import { type Ratio, type Spread, toRatio } from './measure/spread.ts';
import type { Rates } from './parts/output.ts';

/** One figure of a run against its limit. */
export interface Target {
  /** stable id, by which the history names ratios */
  id: string;
  name: string;
  value: number;
  /** the lowest and the highest of the rounds; undefined for a figure that is taken once */
  range: { min: number; max: number } | undefined;
  limit: number;
  /** direction of the limit: the value may be at most that, or must be at least that */
  bound: 'at most' | 'at least';
  /** unit of the value; `×` for a ratio of two figures of this run */
  unit: string;
  passed: boolean;
}

/** Returns the targets whose figures this run has. */
export function checkTargets(figures: Figures): Target[] {
  const checked = [...checkRows(figures), ...checkParts(figures), ...checkSizes(figures)];
  return checked.filter((target) => target !== undefined);
}

/** Checks Shellfleet's row beside those of other ways to run a command. */
function checkRows({ rows, sessions }: Figures): (Target | undefined)[] {
  const { bullmq, shellfleet } = rows;
  const dockerExec = rows['docker-exec'];
  const against = (other: RowFigures | undefined, pick: (row: RowFigures) => Spread | undefined): Ratio | undefined => {
    const [own, others] = [shellfleet && pick(shellfleet), other && pick(other)];
    return own && others && toRatio(own, others);
  };
  const faster = (ratio: Ratio | undefined): Ratio | undefined =>
    ratio && { value: 1 / ratio.value, min: 1 / ratio.max, max: 1 / ratio.min };
  const idle = ({ idle }: RowFigures) => idle['echo hi'].p50;
  const fewSpeed = ({ few }: RowFigures) => few?.commandsPerSecond;
  const manySpeed = ({ many }: RowFigures) => many?.commandsPerSecond;
  return [
    atMost('idle-p50', 'idle p50 of `echo hi` / a BullMQ job', against(bullmq, idle), 1.7),
    atMost(
      'idle-p99',
      'idle p99 of `true` / BullMQ’s',
      against(bullmq, ({ idle }) => idle.true.p99),
      2,
    ),
    atLeast('speed-few', 'commands/s, few sessions / BullMQ', against(bullmq, fewSpeed), 0.85),
    atLeast('speed-many', 'commands/s, many sessions / BullMQ', against(bullmq, manySpeed), 0.85),
    atLeast(
      'speed-docker-attach',
      'commands/s, few sessions / a bare shell behind `docker attach`',
      against(rows['docker-attach'], fewSpeed),
      0.6,
    ),
    atMost(
      'redis-cpu',
      'Redis CPU per command, many sessions / a BullMQ queue each',
      against(bullmq, ({ many }) => many?.redisCpuUs),
      0.6,
    ),
    atMost(
      'worker-cpu',
      'worker CPU per command, few sessions / BullMQ’s worker',
      against(bullmq, ({ few }) => few?.workerCpuUs),
      1.1,
    ),
    atLeast('idle-docker-exec', 'idle p50 of `docker exec` / `echo hi`', faster(against(dockerExec, idle)), 25),
    atLeast('speed-docker-exec', 'commands/s, few sessions / docker exec', against(dockerExec, fewSpeed), 30),
    atMost('start-cold', 'session start, cold', asIs(sessions.startColdMs), 110, 'ms'),
  ];
}

/** Checks the parts besides the rows. */
function checkParts({ extra }: Figures): (Target | undefined)[] {
  const { startWarmMs, floods, attachedFlood, toolCallMs, cli, output } = extra;
  return [
    atMost('start-warm', 'session start, warm', startWarmMs && asIs(startWarmMs), 25, 'ms'),
    atMost(
      'flood-neighbour',
      'p95 of another session beside a flood / beside `yes` into /dev/null',
      floods && toRatio(floods.duringMs, floods.besideMs),
      2,
    ),
    atMost(
      'attached-flood-memory',
      'growth of the worker’s memory in a flood with an attached reader',
      attachedFlood && once(attachedFlood.growthBytes / 1e6),
      100,
      'MB',
    ),
    atMost(
      'cli-exec',
      '`shellfleet exec` of `true` / `docker exec`, whole processes',
      cli && toRatio(cli.execMs, cli.dockerExecMs),
      1.3,
    ),
    atMost('tool-call', 'a tool call', toolCallMs && asIs(toolCallMs), 55, 'ms'),
    atLeast(
      'output-chain',
      'a command’s whole output chain, all built-in rules, slowest input',
      output && slowest(output.chain),
      100,
      'MB/s',
    ),
    atLeast('output-hostile', 'redaction of hostile output, slowest', output && slowest(output.hostile), 20, 'MB/s'),
  ];
}

/** Checks the bounds that no machine changes much. */
function checkSizes({ sessions }: Figures): (Target | undefined)[] {
  const { worker, producer, unnamed } = sessions.connections;
  const rss = sessions.workerRssBytes;
  return [
    // A connection without a name counts for both processes.
    atMost('connections', 'Redis connections of a process', once(Math.max(worker, producer) + unnamed), 3, ''),
    atMost(
      'idle-memory',
      'Redis memory of an idle session after one command',
      once(sessions.redisBytesPerIdleSession / 1_024),
      5,
      'KB',
    ),
    atMost('worker-rss', 'memory of the worker', rss === undefined ? undefined : once(rss / 1e6), 200, 'MB'),
  ];
}

const asIs = ({ median, min, max }: Spread): Ratio => ({ value: median, min, max });
const slowest = (rates: Rates): Ratio | undefined => Object.values(rates).toSorted((a, b) => a.value - b.value)[0];

/** Wraps a figure that was taken once. */
const once = (value: number): Ratio => ({ value, min: value, max: value });

type TargetCheck = (
  id: string,
  name: string,
  ratio: Ratio | undefined,
  limit: number,
  unit?: string,
) => Target | undefined;

const atMost: TargetCheck = (id, name, ratio, limit, unit = '×') =>
  ratio && { ...toTarget(id, name, ratio, limit, unit), bound: 'at most', passed: ratio.value <= limit };

const atLeast: TargetCheck = (id, name, ratio, limit, unit = '×') =>
  ratio && { ...toTarget(id, name, ratio, limit, unit), bound: 'at least', passed: ratio.value >= limit };

function toTarget(id: string, name: string, { value, min, max }: Ratio, limit: number, unit: string) {
  return { id, name, value, range: min === max ? undefined : { min, max }, limit, unit };
}
