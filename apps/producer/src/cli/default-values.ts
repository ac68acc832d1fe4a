import { DEFAULTS } from '@shellfleet/protocol';

/** Lists the defaults of a session and a command, one a line, by the field names of a spec file. */
export function describeDefaults(): string {
  const { session, output, limits, command } = DEFAULTS;
  const groups = { '': session, 'output.': output, 'limits.': limits };
  const rows = Object.entries(groups).flatMap(([prefix, fields]) => toRows(prefix, fields));
  const width = Math.max(...rows.map(([name]) => name.length));
  const { killGraceMs, retry } = command;
  return [
    'Defaults of a session (fields of --spec):',
    ...rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`),
    `A command stops within ${toTime(killGraceMs)} of its time limit or cancellation; it runs again after a loss: ${retry}.`,
  ].join('\n');
}

function toRows(prefix: string, fields: object): [string, string][] {
  return Object.entries(fields)
    .filter(([, value]) => typeof value !== 'object')
    .map(([name, value]) => [prefix + name, toText(name, value)]);
}

function toText(name: string, value: string | number): string {
  if (typeof value === 'number' && name.endsWith('Ms')) return toTime(value);
  if (typeof value === 'number' && /bytes$/i.test(name))
    return inUnits(value, [
      [2 ** 20, 'MiB'],
      [2 ** 10, 'KiB'],
      [1, 'bytes'],
    ]);
  return String(value);
}

const toTime = (ms: number) =>
  inUnits(ms, [
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
    [1, 'ms'],
  ]);

/** Formats a value in the largest unit that fits without a fraction. */
function inUnits(value: number, units: readonly [number, string][]): string {
  const [size, name] = units.find(([size]) => value % size === 0 && value > 0) ?? [1, units.at(-1)?.[1]];
  return `${value / size} ${name}`;
}
