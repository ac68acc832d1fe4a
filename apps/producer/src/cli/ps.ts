import type { SessionFilter, SessionInfo } from '@shellfleet/client';
import { SESSION_STATES, type SessionState } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { collectPair } from './pairs.ts';
import { whyWaitingInShort } from './why-waiting.ts';

interface Flags {
  all?: boolean;
  state?: SessionState;
  label?: Record<string, string>;
  allTenants?: boolean;
  json?: boolean;
}

export function registerPs(program: Command, context: Context): void {
  program
    .command('ps')
    .description('list sessions')
    .addOption(new Option('-a, --all', 'closed sessions too, while their output can be read').env('SHELLFLEET_PS_ALL'))
    .addOption(
      new Option('--state <state>', 'only sessions in this state').choices(SESSION_STATES).env('SHELLFLEET_PS_STATE'),
    )
    .addOption(
      new Option('--label <name=value>', 'only sessions that have this label; again for more')
        .argParser(collectPair)
        .env('SHELLFLEET_PS_LABEL'),
    )
    .addOption(
      new Option('--all-tenants', 'those of every tenant, for the operator of the fleet').env(
        'SHELLFLEET_PS_ALL_TENANTS',
      ),
    )
    .addOption(jsonFlag())
    .action((flags: Flags) => ps(context, flags));
}

async function ps(context: Context, { all, state, label, allTenants, json }: Flags): Promise<void> {
  const { terminal } = context;
  const filter: SessionFilter = {
    ...(all === undefined ? {} : { all }),
    ...(state === undefined ? {} : { state }),
    ...(label === undefined ? {} : { labels: label }),
    ...(allTenants === undefined ? {} : { allTenants }),
  };
  const showsClosed = all === true || state === 'closed';
  await context.withFleet(async (fleet) => {
    const head = ['SESSION', 'STATE', 'HOST', 'QUEUED', 'RUNNING', 'LAST ACTIVE', 'WAITS BECAUSE'];
    const rows = [[...(allTenants ? ['TENANT'] : []), ...head, ...(showsClosed ? ['CLOSED', 'CLOSED BECAUSE'] : [])]];
    for await (const info of fleet.sessions(filter)) {
      const { tenant, closedAt = '-', closeReason = '-' } = info;
      if (json) await terminal.json(info);
      else
        rows.push([
          ...(tenant === undefined ? [] : [tenant]),
          ...toRow(info),
          ...(showsClosed ? [closedAt, closeReason] : []),
        ]);
    }
    if (!json) await terminal.table(rows);
  });
}

function toRow(info: SessionInfo): string[] {
  const named = info.kept === undefined ? info.state : `${info.state}, kept`;
  const state = info.position === undefined ? named : `${named} #${info.position}`;
  return [
    info.id,
    state,
    info.hostId ?? '-',
    String(info.queuedCommands),
    info.runningCommandId ?? '-',
    info.lastActiveAt,
    whyWaitingInShort(info),
  ];
}
