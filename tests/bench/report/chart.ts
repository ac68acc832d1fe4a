import type { Figures, RowFigures } from '../figures.ts';
import type { Spread } from '../measure/spread.ts';
import type { Plan } from '../plan.ts';
import { ROW_NAMES, type RowName } from '../rows/row.ts';

// The figures as one SVG: latency of one command at a time, commands/s, and processor time per command. The colours
// suit light and dark pages.

type NamedRow = RowFigures & { name: RowName };

const WIDTH = 760;
const LEFT = 130;
/** room for a value and its range, right of the axis */
const RIGHT = 150;
const ROW_HEIGHT = 24;
const PARTS = [
  { figure: 'redisCpuUs', name: 'Redis', colour: 'c1' },
  { figure: 'workerCpuUs', name: 'worker', colour: 'c2' },
  { figure: 'producerCpuUs', name: 'producer', colour: 'c3' },
] as const;

const STYLE = `
text{font:12px system-ui,sans-serif;fill:#1f2328}.h{font-weight:600;font-size:14px}.v{font-variant-numeric:tabular-nums}
.n{fill:#59636e}.g{stroke:#8c959f;stroke-opacity:.35}.o{font-weight:600}
.r{stroke:#0969da;stroke-width:2}.c1{fill:#0969da}.c2{fill:#bc4c00}.c3{fill:#1a7f37}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.n{fill:#9198a1}.r{stroke:#58a6ff}.c1{fill:#58a6ff}.c2{fill:#f0883e}.c3{fill:#3fb950}}`;

/** Renders the chart. `made` names the run: its date, commit and machine. */
export function renderChart({ rows }: Figures, plan: Plan, made: string): string {
  const measured = ROW_NAMES.flatMap((name) => (rows[name] ? [{ name, ...rows[name] }] : []));
  const panels = [
    latencyPanel(measured),
    speedPanel(measured, plan.few.sessions),
    cpuPanel(measured, plan.few.sessions),
  ];
  const parts: string[] = [];
  let top = 20;
  for (const { height, body } of panels) {
    parts.push(`<g transform="translate(0 ${top})">${body}</g>`);
    top += height + 26;
  }
  const height = top + 6;
  const desc = `${describe(measured, plan.few.sessions)} ${made}.`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">
<title id="title">Shellfleet beside other ways to run a command</title>
<desc id="desc">${escapeText(desc)}</desc>
<style>${escapeText(STYLE)}</style>
${parts.join('\n')}
${text(WIDTH - 10, height - 8, made, 'n', 'end')}
</svg>
`;
}

interface Panel {
  height: number;
  body: string;
}

/** Returns the panel of points with ranges on a logarithmic axis. */
function latencyPanel(rows: NamedRow[]): Panel {
  const spreads = rows.map(({ idle }) => idle['echo hi'].p50);
  const [lowest, highest] = [
    Math.floor(Math.log10(Math.min(...spreads.map(({ min }) => min)))),
    Math.ceil(Math.log10(Math.max(...spreads.map(({ max }) => max)))),
  ];
  const x = (ms: number) => LEFT + ((Math.log10(ms) - lowest) / (highest - lowest)) * (WIDTH - LEFT - RIGHT);
  const bottom = 14 + rows.length * ROW_HEIGHT;
  const ticks = Array.from({ length: highest - lowest + 1 }, (_, index) => 10 ** (lowest + index));
  const grid = ticks.map(
    (ms) => `${line(x(ms), 10, x(ms), bottom, 'g')}${text(x(ms), bottom + 15, `${toShort(ms)} ms`, 'n', 'middle')}`,
  );
  const points = rows.map(({ name, idle }, index) => {
    const { median, min, max } = idle['echo hi'].p50;
    const y = 26 + index * ROW_HEIGHT;
    return `${label(name, y)}${line(x(min), y, x(max), y, 'r')}<circle class="c1" cx="${round(x(median))}" cy="${y}" r="4"/>${value(y, `${toShort(median)} [${toShort(min)}–${toShort(max)}]`)}`;
  });
  const head = text(10, 0, 'One `echo hi` at a time: median latency, logarithmic axis', 'h');
  return { height: bottom + 20, body: [head, ...grid, ...points].join('') };
}

function speedPanel(rows: NamedRow[], sessions: number): Panel {
  const found = rows.flatMap(({ name, few }) => (few ? [{ name, speed: few.commandsPerSecond }] : []));
  const most = Math.max(...found.map(({ speed }) => speed?.median ?? 0));
  const bars = found.map(({ name, speed }, index) => {
    const y = 26 + index * ROW_HEIGHT;
    return `${label(name, y)}${bar(LEFT, y, scaled(speed?.median, most), 'c1')}${value(y, toRange(speed))}`;
  });
  const head = text(10, 0, `Commands per second in ${sessions} sessions`, 'h');
  return { height: 14 + found.length * ROW_HEIGHT, body: [head, ...bars].join('') };
}

/**
 * Returns the panel of processor times. It has only rows with a Redis and a worker process of their own, because the
 * engine's time for the others is unknown.
 */
function cpuPanel(rows: NamedRow[], sessions: number): Panel {
  const found = rows.flatMap(({ name, few }) => {
    const costs = PARTS.map(({ figure }) => few?.[figure]?.median);
    return costs.every((cost) => cost !== undefined) ? [{ name, costs }] : [];
  });
  const most = Math.max(...found.map(({ costs }) => sum(costs)));
  const bars = found.map(({ name, costs }, index) => {
    const y = 26 + index * ROW_HEIGHT;
    let from = LEFT;
    const pieces = costs.map((cost, part) => {
      const width = scaled(cost, most);
      const piece = bar(from, y, width, PARTS[part]!.colour);
      from += width;
      return piece;
    });
    return `${label(name, y)}${pieces.join('')}${value(y, `${costs.map((cost) => cost.toFixed(0)).join(' + ')} µs`)}`;
  });
  const head = text(10, 0, `Processor time of a command in ${sessions} sessions`, 'h');
  const key = PARTS.map(
    ({ name, colour }, part) =>
      `<rect class="${colour}" x="${WIDTH - 250 + part * 82}" y="-9" width="10" height="10"/>${text(WIDTH - 236 + part * 82, 0, name, 'n')}`,
  );
  return { height: 14 + found.length * ROW_HEIGHT, body: [head, ...key, ...bars].join('') };
}

function describe(rows: NamedRow[], sessions: number): string {
  const each = rows.map(({ name, idle, few }) => {
    const speed = few?.commandsPerSecond;
    const load = speed ? `, ${speed.median.toFixed(0)} commands per second in ${sessions} sessions` : '';
    return `${name}: ${toShort(idle['echo hi'].p50.median)} ms for one command${load}`;
  });
  return `${each.join('; ')}.`;
}

function scaled(cost: number | undefined, most: number): number {
  return most === 0 ? 0 : ((cost ?? 0) / most) * (WIDTH - LEFT - RIGHT);
}

const sum = (costs: readonly number[]): number => costs.reduce((total, cost) => total + cost, 0);
const toRange = (found: Spread | undefined): string =>
  found ? `${found.median.toFixed(0)} [${found.min.toFixed(0)}–${found.max.toFixed(0)}]` : '–';
const toShort = (found: number): string => String(Number(found.toPrecision(found < 100 ? 2 : 3)));
const round = (at: number): number => Math.round(at * 10) / 10;

const label = (name: RowName, y: number): string =>
  text(LEFT - 10, y + 4, name, name === 'shellfleet' ? 'o' : '', 'end');
const value = (y: number, found: string): string => text(WIDTH - RIGHT + 10, y + 4, found, 'v');
const bar = (x: number, y: number, width: number, colour: string): string =>
  `<rect class="${colour}" x="${round(x)}" y="${y - 8}" width="${round(Math.max(width, 1))}" height="16"/>`;
const line = (x1: number, y1: number, x2: number, y2: number, kind: string): string =>
  `<line class="${kind}" x1="${round(x1)}" y1="${y1}" x2="${round(x2)}" y2="${y2}"/>`;
const text = (x: number, y: number, content: string, kind = '', anchor = 'start'): string =>
  `<text class="${kind}" x="${round(x)}" y="${y}" text-anchor="${anchor}">${escapeText(content)}</text>`;

function escapeText(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
