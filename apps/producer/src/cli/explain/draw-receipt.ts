import type { Receipt, ReceiptStep } from '@shellfleet/client';
import { cutRow } from '../top/fit-table.ts';
import { describeMs } from '../units.ts';

const LABELS: Readonly<Record<ReceiptStep, string>> = {
  slot: 'for a slot',
  earlier: 'earlier commands',
  approval: 'for a person',
  image: 'pull of the image',
  opening: 'opening its shell',
  attempt: 'earlier attempt',
  waiting: 'other waiting',
  running: 'running',
  unknown: 'not known',
  storing: 'storing',
};
const GAP = '  ';
/** Fewest columns of the bars. A terminal with less room for them shows none. */
const LEAST_BAR = 8;

/** A row of the waterfall: `before` and `after` its bar. */
export interface ReceiptRow {
  step: ReceiptStep;
  before: string;
  bar: string;
  after: string;
}

/** Draws the parts of a receipt in rows of at most `width` columns. Each bar begins where the last one ends. */
export function drawReceipt({ parts }: Receipt, { width, mark }: { width: number; mark: string }): ReceiptRow[] {
  const totalMs = parts.reduce((sum, { ms }) => sum + ms, 0);
  const cells = parts.map(({ step, ms, clock }) => ({
    label: LABELS[step],
    time: describeMs(ms),
    share: `${Math.round((100 * ms) / totalMs)} %`,
    clock: clock === 'redis' ? 'Redis' : 'host',
  }));
  const most = (column: 'label' | 'time' | 'share' | 'clock') => Math.max(0, ...cells.map((row) => row[column].length));
  const [labels, times, shares, clocks] = [most('label'), most('time'), most('share'), most('clock')];
  const room = width - (labels + times + shares + clocks + 4 * GAP.length);
  const columns = room < LEAST_BAR ? 0 : room;
  let doneMs = 0;
  return parts.map(({ step, ms }, index) => {
    const { label = '', time = '', share = '', clock = '' } = cells[index] ?? {};
    const before = `${label.padEnd(labels)}${GAP}`;
    const bar = columns === 0 ? '' : barOf(doneMs / totalMs, (doneMs + ms) / totalMs, columns, mark);
    const after = `${columns === 0 ? '' : GAP}${time.padStart(times)}${GAP}${share.padStart(shares)}${GAP}${clock}`;
    doneMs += ms;
    return { step, before: cutRow(before, width), bar, after: cutRow(after, Math.max(0, width - before.length)) };
  });
}

/** Draws the part from `from` to `to`, both from 0 to 1, of a bar. Every part has at least one column. */
function barOf(from: number, to: number, columns: number, mark: string): string {
  const first = Math.min(columns - 1, Math.floor(from * columns));
  const end = Math.max(first + 1, Math.round(to * columns));
  return (' '.repeat(first) + mark.repeat(end - first)).padEnd(columns);
}
