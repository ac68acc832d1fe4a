import type { Approval, Fleet } from '@shellfleet/client';
import type { Terminal } from '../terminal.ts';
import { describeQuestion } from './describe-question.ts';

/** Each question whole, with the commands that answer it; then a line for each change. Ends when the reader of stdout has gone. */
export async function printChanges(terminal: Terminal, fleet: Fleet, json: boolean): Promise<void> {
  const shown = new Map<string, Approval>();
  try {
    for await (const approval of fleet.approvals.watch({ signal: terminal.readerGone })) {
      if (json) await terminal.json(approval);
      else await showChange(terminal, approval, shown.get(approval.id));
      if (approval.state === 'pending') shown.set(approval.id, approval);
      else shown.delete(approval.id);
    }
  } catch (error) {
    if (!terminal.readerGone.aborted) throw error;
  }
}

async function showChange(terminal: Terminal, approval: Approval, before: Approval | undefined): Promise<void> {
  const { id, state, count, answeredBy } = approval;
  if (state === 'pending' && before === undefined) {
    for (const line of describeQuestion(approval)) await terminal.line(line);
    await terminal.line(`answer    shellfleet approvals approve ${id} [--for session|prefix]`);
    await terminal.line(`          shellfleet approvals deny ${id} [--reason TEXT] [--abort]\n`);
  } else if (state !== 'pending') {
    await terminal.table([[id, state, answeredBy === undefined ? '' : `by ${answeredBy}`]]);
  } else if (count !== before?.count) {
    await terminal.table([[id, `${count} sessions ask it`]]);
  }
}
