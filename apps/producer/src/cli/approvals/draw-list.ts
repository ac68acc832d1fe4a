import type { Approval } from '@shellfleet/client';
import { toPrintable } from '@shellfleet/protocol';
import { cutText, type ScreenLine, wrapLines } from '../wrap-lines.ts';
import { askersOf, describeCount, firstLineOf } from './screen-texts.ts';

export interface Listed {
  /** Number that no other question ever has. */
  number: number;
  approval: Approval;
}

export interface QuestionList {
  tenant: string;
  questions: readonly Listed[];
  selected: string | undefined;
  /** Lines about the questions that ended last. */
  events: readonly string[];
  notice: string;
  head: readonly ScreenLine[];
}

/** Draws the questions around the selected one, as many as fit. */
export function drawList(list: QuestionList, rows: number, columns: number): string[] {
  const { tenant, questions, selected, events, notice } = list;
  const head = wrapLines([...list.head, { text: describeCount(questions.length, tenant) }], columns);
  const foot = wrapLines(
    [
      ...events.map((text) => ({ text: cutText(text, columns) })),
      { text: notice },
      { text: 'Up, Down or its number, then Enter: show a question   q: leave' },
    ],
    columns,
  );
  const room = Math.max(1, rows - head.length - foot.length - 1);
  const at = Math.max(
    0,
    questions.findIndex(({ approval }) => approval.id === selected),
  );
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), questions.length - room));
  const shown = questions
    .slice(first, first + room)
    .map((listed) => drawRow(listed, listed.approval.id === selected, columns));
  return [...head, '', ...fill(shown, room), ...foot];
}

function drawRow({ number, approval }: Listed, isSelected: boolean, columns: number): string {
  const { reason, outside, expiresAt } = approval;
  const parts = [
    `${isSelected ? '>' : ' '} #${number}`,
    `until ${expiresAt.slice(11, 19)}Z`,
    askersOf(approval),
    ...(outside ? ['OUTSIDE its sandbox'] : []),
    firstLineOf(approval),
    reason,
  ];
  return cutText(parts.map(toPrintable).join('  '), columns);
}

export const fill = (rows: readonly string[], count: number) => [
  ...rows,
  ...Array.from({ length: Math.max(0, count - rows.length) }, () => ''),
];
