import { type Approval, type ApprovalScope, describePattern } from '@shellfleet/client';
import { APPROVAL_SCOPES, DEFAULTS } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from '../command-flags.ts';
import type { Context } from '../context.ts';
import { canShowFullScreen } from '../full-screen.ts';
import { printChanges } from './print-changes.ts';
import { askersOf, firstLineOf } from './screen-texts.ts';
import { watchAtTerminal } from './watch-at-terminal.ts';

export function registerApprovals(program: Command, context: Context): void {
  const approvals = program.command('approvals').description('commands that wait for the approval of a person');
  const tenantOf = () => program.opts<{ tenant?: string }>().tenant || DEFAULTS.connection.tenant;
  const by = () => new Option('--by <name>', 'who answers, as everybody sees it').env('SHELLFLEET_ANSWERED_BY');
  approvals
    .command('ls')
    .description('list the questions that wait')
    .addOption(new Option('--approved', 'the approvals that hold').env('SHELLFLEET_APPROVED'))
    .addOption(jsonFlag())
    .action((flags: { approved?: boolean; json?: boolean }) => list(context, flags, tenantOf()));
  approvals
    .command('watch')
    .description('answer questions at a terminal; elsewhere print each, and what became of it, until Ctrl-C')
    .addOption(jsonFlag())
    .addOption(by())
    .action((flags: { json?: boolean; by?: string }) => watch(context, flags, tenantOf()));
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
  tenant: string,
): Promise<void> {
  await withFleet(async (fleet) => {
    const listed = await fleet.approvals.list(approved ? { state: 'approved' } : {});
    if (json) {
      for (const approval of listed) await terminal.json(approval);
      return;
    }
    await terminal.table(approved ? toApprovedRows(listed) : toPendingRows(listed));
    if (listed.length > 0) return;
    terminal.say(`${approved ? 'No approval holds' : 'No question waits'} in the tenant ${tenant}.`);
  });
}

const toPendingRows = (questions: readonly Approval[]) => [
  ['QUESTION', 'SESSION', 'UNTIL', 'BECAUSE', 'SCRIPT, FIRST LINE'],
  ...questions.map((question) => {
    const { id, outside, reason, expiresAt } = question;
    return [
      id,
      askersOf(question),
      expiresAt,
      `${outside ? 'leaves its sandbox: ' : ''}${reason}`,
      firstLineOf(question),
    ];
  }),
];

const toApprovedRows = (approvals: readonly Approval[]) => [
  ['QUESTION', 'SESSION', 'FOR', 'BY', 'SCRIPT, FIRST LINE, OR RULE'],
  ...approvals.map((approval) => {
    const { id, scope = '', answeredBy = '', amendment } = approval;
    const what = scope === 'prefix' && amendment !== undefined ? describePattern(amendment) : firstLineOf(approval);
    return [id, askersOf(approval), scope, answeredBy, what];
  }),
];

function watch(
  context: Context,
  { json = false, by: answeredBy }: { json?: boolean; by?: string },
  tenant: string,
): Promise<void> {
  return context.withFleet((fleet) =>
    canShowFullScreen(context.config) && !json
      ? watchAtTerminal(context, fleet, { tenant, answeredBy })
      : printChanges(context.terminal, fleet, { json, tenant }),
  );
}
