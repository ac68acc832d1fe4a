import type { ExtraFigures, Figures, LoadSpreads } from '../figures.ts';
import type { Comparison } from '../history.ts';
import type { Ratio, Spread } from '../measure/spread.ts';
import type { PeerFigures } from '../parts/peers.ts';
import type { Plan } from '../plan.ts';
import { ROW_NAMES } from '../rows/row.ts';
import type { Target } from '../targets.ts';

/** Renders the figures as Markdown tables: median [min–max] over the rounds. */
export function renderFigures({ rows, sessions, extra }: Figures, plan: Plan): string {
  const measured = ROW_NAMES.flatMap((name) => {
    const row = rows[name];
    return row ? [{ name, row }] : [];
  });
  const idle = measured.map(({ name, row }) => {
    const { true: quiet, 'echo hi': hi } = row.idle;
    return [name, spread(quiet.p50, 2), spread(quiet.p99, 2), spread(hi.p50, 2), spread(hi.p99, 2)];
  });
  const load = (pick: 'few' | 'many') =>
    measured.flatMap(({ name, row }) => {
      if (row[pick] === undefined) return [];
      const { commandsPerSecond, redisCpuUs, workerCpuUs, producerCpuUs }: LoadSpreads = row[pick];
      return [[name, ...[commandsPerSecond, redisCpuUs, workerCpuUs, producerCpuUs].map((each) => spread(each, 0))]];
    });
  const loadHead = ['commands/s', 'Redis µs/command', 'worker µs/command', 'producer µs/command'];
  const { worker, producer, unnamed } = sessions.connections;
  const warm = measured.map(({ name }) => {
    const { perSession, idle } = plan.warmUp[name];
    return [name, String(perSession * plan.few.sessions), String(idle)];
  });
  return [
    table(['one at a time, ms', '`true` p50', 'p99', '`echo hi` p50', 'p99'], idle),
    table([`${plan.few.sessions} sessions`, ...loadHead], load('few')),
    table([`${plan.many.sessions} sessions`, ...loadHead], load('many')),
    ...(extra.peers ? [table(peerHead(plan), peerRows(extra.peers))] : []),
    table(
      ['Shellfleet', ''],
      [
        ['session start, cold, ms', spread(sessions.startColdMs, 0)],
        ...(extra.startWarmMs ? [['session start, warm, ms', spread(extra.startWarmMs, 0)]] : []),
        ['Redis memory of an idle session, KB', (sessions.redisBytesPerIdleSession / 1_024).toFixed(1)],
        ['Redis CPU of an idle session, µs in a second', sessions.redisCpuUsPerIdleSession.toFixed(1)],
        ['Redis CPU of a fleet without sessions, µs in a second', sessions.redisCpuUsOfEmptyFleet.toFixed(0)],
        ['Redis connections: worker, producer, unnamed', `${worker}, ${producer}, ${unnamed}`],
        ['worker RSS, MB', sessions.workerRssBytes === undefined ? '–' : (sessions.workerRssBytes / 1e6).toFixed(0)],
        ...extraRows(extra),
      ],
    ),
    table(
      [`warm-up commands before ${plan.rounds} measured rounds`, `in ${plan.few.sessions} sessions`, 'one at a time'],
      warm,
    ),
  ].join('\n\n');
}

const peerHead = ({ few }: Plan): string[] => [
  ...['peers, one at a time, ms', '`true` p50', 'p99', '`echo hi` p50', 'p99'],
  `commands/s, ${few.sessions} sessions`,
];

function peerRows(peers: readonly PeerFigures[]): string[][] {
  return peers.map(({ name, idle: { true: quiet, 'echo hi': hi }, commandsPerSecond }) => [
    name,
    ...[quiet.p50, quiet.p99, hi.p50, hi.p99].map((each) => spread(each, 2)),
    spread(commandsPerSecond, 0),
  ]);
}

function extraRows({ floods, attachedFlood, toolCallMs, cli, output }: ExtraFigures): string[][] {
  const rates = ([name, { value, min, max }]: [string, Ratio]): string[] => [
    `${name}, MB/s`,
    min === max ? value.toFixed(0) : spread({ median: value, min, max }, 0),
  ];
  return [
    ...(floods
      ? [
          ['p95 in another session beside `yes` into /dev/null, ms', spread(floods.besideMs, 1)],
          [`the same beside a flood of ${(floods.bytes / 1e6).toFixed(0)} MB, ms`, spread(floods.duringMs, 1)],
          ['that flood, MB/s', spread(floods.megabytesPerSecond, 0)],
        ]
      : []),
    ...(attachedFlood
      ? [
          [
            `growth of the worker’s memory in a flood of ${attachedFlood.bytes / 1e6} MB with an attached reader, MB`,
            (attachedFlood.growthBytes / 1e6).toFixed(0),
          ],
          ['that flood, until the reader has all of it, MB/s', attachedFlood.megabytesPerSecond.toFixed(0)],
        ]
      : []),
    ...(toolCallMs ? [['a tool call, ms', spread(toolCallMs, 1)]] : []),
    ...(cli
      ? [
          ['`shellfleet exec` of `true`, whole process, ms', spread(cli.execMs, 0)],
          ['`docker exec` of `true`, whole process, ms', spread(cli.dockerExecMs, 0)],
          ['`node -e 0`, ms', spread(cli.nodeMs, 0)],
        ]
      : []),
    ...Object.entries(output?.chain ?? {}).map(rates),
    ...Object.entries(output?.hostile ?? {}).map(([name, rate]) => rates([`redaction of ${name}`, rate])),
  ];
}

export function renderTargets(targets: readonly Target[]): string {
  return table(
    ['target', 'wanted', 'found', 'rounds', ''],
    targets.map(({ name, value, range, limit, bound, unit, passed }) => [
      name,
      `${bound} ${limit} ${unit}`.trim(),
      `${value.toFixed(2)} ${unit}`.trim(),
      range === undefined ? '' : `${range.min.toFixed(2)}–${range.max.toFixed(2)}`,
      passed ? 'pass' : 'FAIL',
    ]),
  );
}

export function renderComparisons(comparisons: readonly Comparison[]): string {
  if (comparisons.length === 0)
    return 'No run on as many processors was recorded, so there is nothing to compare with.';
  return table(
    ['ratio', 'recorded before', 'found', 'change', ''],
    comparisons.map(({ name, value, reference, passed }) => [
      name,
      reference.toFixed(2),
      value.toFixed(2),
      `${value >= reference ? '+' : '−'}${Math.abs((value / reference - 1) * 100).toFixed(0)} %`,
      passed ? 'pass' : 'FAIL: worse by a quarter',
    ]),
  );
}

function spread(value: Omit<Spread, 'rounds'> | undefined, digits: number): string {
  if (value === undefined) return '–';
  const [median, min, max] = [value.median, value.min, value.max].map((each) => each.toFixed(digits));
  return `${median} [${min}–${max}]`;
}

function table(head: string[], body: string[][]): string {
  const lines = [head, ...body];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length), 3));
  const render = (cells: string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [render(head), rule, ...body.map(render)].join('\n');
}
