import type { SessionInfo } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';

const STATES = ['queued', 'starting', 'ready', 'busy', 'unreachable', 'closing', 'closed', 'lost'] as const;

interface Flags {
  all?: boolean;
  state?: (typeof STATES)[number];
  json?: boolean;
}

export function registerPs(program: Command, context: Context): void {
  program
    .command('ps')
    .description('list sessions')
    .addOption(new Option('-a, --all', 'include closed sessions').env('SHELLFLEET_PS_ALL'))
    .addOption(new Option('--state <state>', 'only sessions in this state').choices(STATES).env('SHELLFLEET_PS_STATE'))
    .addOption(jsonFlag())
    .action((flags: Flags) => ps(context, flags));
}

async function ps(context: Context, flags: Flags): Promise<void> {
  const { terminal } = context;
  await context.withFleet(async (fleet) => {
    const rows: string[][] = [['SESSION', 'STATE', 'HOST', 'QUEUED', 'RUNNING', 'LAST ACTIVE']];
    for await (const info of fleet.sessions(flags.state === undefined ? {} : { state: flags.state })) {
      if (info.state === 'closed' && !flags.all && flags.state !== 'closed') continue;
      if (flags.json) await terminal.json(info);
      else rows.push(toRow(info));
    }
    if (!flags.json) await terminal.table(rows);
  });
}

function toRow(info: SessionInfo): string[] {
  const place = info.position === undefined ? info.state : `${info.state} #${info.position}`;
  const state = info.noHostReason === undefined ? place : `${place}, no host`;
  return [
    info.id,
    state,
    info.hostId ?? '-',
    String(info.queuedCommands),
    info.runningCommandId ?? '-',
    info.lastActiveAt,
  ];
}
