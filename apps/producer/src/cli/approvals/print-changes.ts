import { type Approval, describeQuestion, type Fleet } from '@shellfleet/client';
import { DEFAULTS } from '@shellfleet/protocol';
import type { CliOutput } from '../terminal.ts';

/**
 * Prints each question with the commands that answer it, and a line for each later change. Ends when stdout has no
 * reader.
 */
export async function printChanges(
  terminal: CliOutput,
  fleet: Fleet,
  { json, tenant }: { json: boolean; tenant: string },
): Promise<void> {
  if (!json) terminal.say(`Questions of the tenant ${tenant} are printed here, until Ctrl-C.`);
  const shown = new Map<string, Approval>();
  try {
    for await (const approval of fleet.approvals.watch({ signal: terminal.readerGone })) {
      if (json) await terminal.json(approval);
      else await showChange(terminal, approval, shown.get(approval.id), tenant);
      if (approval.state === 'pending') shown.set(approval.id, approval);
      else shown.delete(approval.id);
    }
  } catch (error) {
    if (!terminal.readerGone.aborted) throw error;
  }
}

async function showChange(
  terminal: CliOutput,
  approval: Approval,
  before: Approval | undefined,
  tenant: string,
): Promise<void> {
  const { id, state, count, answeredBy, answer, amendment } = approval;
  if (state === 'pending' && before === undefined) {
    const of = tenant === DEFAULTS.connection.tenant ? id : `${id} --tenant ${tenant}`;
    for (const line of describeQuestion(approval)) await terminal.line(line);
    await terminal.line(
      `answer    shellfleet approvals approve ${of} [--for ${amendment ? 'session|prefix' : 'session'}]`,
    );
    await terminal.line(`          shellfleet approvals deny ${of} [--reason TEXT] [--abort]\n`);
  } else if (state !== 'pending') {
    const how = [answeredBy === undefined ? '' : `by ${answeredBy}`, answer ?? ''].filter((text) => text !== '');
    await terminal.table([[id, state, ...how]]);
  } else if (count !== before?.count) {
    await terminal.table([[id, `${count} sessions ask it`]]);
  }
}
