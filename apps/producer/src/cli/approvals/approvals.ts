import type { Approval, ApprovalScope } from '@shellfleet/client';
import { APPROVAL_SCOPES } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from '../command-flags.ts';
import type { Context } from '../context.ts';
import { describeQuestion } from './describe-question.ts';

export function registerApprovals(program: Command, context: Context): void {
  const approvals = program.command('approvals').description('commands that wait for the approval of a person');
  const by = () => new Option('--by <name>', 'who answers, as everybody sees it').env('SHELLFLEET_ANSWERED_BY');
  approvals
    .command('ls')
    .description('list the questions that wait')
    .addOption(new Option('--approved', 'the approvals that hold').env('SHELLFLEET_APPROVED'))
    .addOption(jsonFlag())
    .action((flags: { approved?: boolean; json?: boolean }) => list(context, flags));
  approvals
    .command('watch')
    .description('show each question, and what became of it, until Ctrl-C')
    .addOption(jsonFlag())
    .action((flags: { json?: boolean }) => watch(context, flags.json === true));
  approvals
    .command('approve')
    .description('let a command run')
    .argument('<question>')
    .addOption(
      new Option(
        '--for <scope>',
        'what asks now; its sessions; or every command that the shown rule allows, until it is revoked',
      )
        .choices([...APPROVAL_SCOPES])
        .default('command')
        .env('SHELLFLEET_APPROVE_FOR'),
    )
    .addOption(by())
    .action((id: string, flags: { for: ApprovalScope; by?: string }) =>
      context.withFleet(async (fleet) => {
        await fleet.approvals.approve(id, { scope: flags.for, ...named(flags) });
        context.terminal.say(`Approved for ${WHAT[flags.for]}.`);
      }),
    );
  approvals
    .command('deny')
    .description('end a command that waits, unrun')
    .argument('<question>')
    .addOption(new Option('--reason <text>', 'shown in its Result').env('SHELLFLEET_DENY_REASON'))
    .addOption(new Option('--abort', 'cancel what waits behind it, too').env('SHELLFLEET_DENY_ABORT'))
    .addOption(by())
    .action((id: string, flags: { reason?: string; abort?: boolean; by?: string }) =>
      context.withFleet(async (fleet) => {
        await fleet.approvals.deny(id, flags.reason, { abort: flags.abort === true, ...named(flags) });
        context.terminal.say('Denied: nothing of it was run.');
      }),
    );
  approvals
    .command('revoke')
    .description('take an approval back; what runs goes on')
    .argument('<question>')
    .addOption(by())
    .action((id: string, flags: { by?: string }) =>
      context.withFleet(async (fleet) => {
        await fleet.approvals.revoke(id, named(flags));
        context.terminal.say('Revoked: no host starts another command on it.');
      }),
    );
}

const WHAT: Record<ApprovalScope, string> = {
  command: 'what asks now',
  session: 'the sessions that ask now',
  prefix: 'every command that its rule allows, until `approvals revoke`',
};

const named = ({ by }: { by?: string }) => (by === undefined ? {} : { answeredBy: by });

async function list(
  { terminal, withFleet }: Context,
  { approved, json }: { approved?: boolean; json?: boolean },
): Promise<void> {
  await withFleet(async (fleet) => {
    const questions = await fleet.approvals.list(approved ? { state: 'approved' } : {});
    if (json) {
      for (const question of questions) await terminal.json(question);
      return;
    }
    const rows = questions.map(({ id, sessionId, count, reason, script, scope = '', expiresAt }) => [
      id,
      count > 1 ? `${sessionId} +${count - 1}` : sessionId,
      approved ? scope : expiresAt,
      reason,
      script.split('\n')[0] ?? '',
    ]);
    const header = ['QUESTION', 'SESSION', approved ? 'FOR' : 'UNTIL', 'BECAUSE', 'SCRIPT, FIRST LINE'];
    await terminal.table([header, ...rows]);
  });
}

/** Each question whole, with the commands that answer it; then a line for each change. */
async function watch({ terminal, withFleet }: Context, json: boolean): Promise<void> {
  await withFleet(async (fleet) => {
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
  });
}

async function showChange(
  terminal: Context['terminal'],
  approval: Approval,
  before: Approval | undefined,
): Promise<void> {
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
