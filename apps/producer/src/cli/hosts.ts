import type { HostInfo } from '@shellfleet/client';
import { labelsText } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { stateOf, whyClosed } from './describe-host.ts';
import { registerInvite } from './hosts-invite.ts';
import { describePull } from './units.ts';

export function registerHosts(program: Command, context: Context): void {
  const hosts = program.command('hosts').description('hosts of the fleet');
  hosts
    .command('cordon')
    .description('let a host take no new session, and keep those that it has')
    .argument('<host>')
    .action((id: string) => cordon(context, id));
  hosts
    .command('drain')
    .description('let a host take nothing new; sessions with a living shell stay there until they end')
    .argument('<host>')
    .addOption(new Option('--undo', 'let it take sessions again').env('SHELLFLEET_DRAIN_UNDO'))
    .action((id: string, flags: { undo?: boolean }) => drain(context, id, flags.undo === true));
  registerInvite(hosts, program, context);
  hosts
    .command('ls')
    .description('list hosts')
    .addOption(jsonFlag())
    .action((flags: { json?: boolean }) => list(context, flags.json === true));
  hosts
    .command('rm')
    .description('take a host that is down and owns no session off the list, until it is back')
    .argument('<host>')
    .action((id: string) => remove(context, id));
  hosts
    .command('uncordon')
    .description('let a cordoned host take sessions again')
    .argument('<host>')
    .action((id: string) => uncordon(context, id));
}

async function drain(context: Context, id: string, undo: boolean): Promise<void> {
  await context.withFleet(async (fleet) => {
    await fleet.drainHost(id, { undo });
    context.terminal.say(
      undo
        ? `${id} takes sessions again.`
        : `${id} takes nothing new. Sessions with a living shell stay there until they end; hosts ls shows how many slots are free.`,
    );
  });
}

async function cordon(context: Context, id: string): Promise<void> {
  await context.withFleet(async (fleet) => {
    await fleet.cordonHost(id);
    context.terminal.say(`${id} takes no new session. The sessions that it has go on there.`);
  });
}

async function uncordon(context: Context, id: string): Promise<void> {
  await context.withFleet(async (fleet) => {
    await fleet.uncordonHost(id);
    context.terminal.say(`${id} is not cordoned any more.`);
  });
}

async function remove(context: Context, id: string): Promise<void> {
  await context.withFleet(async (fleet) => {
    await fleet.removeHost(id);
    context.terminal.say(`${id} is not listed any more, until it is back.`);
  });
}

async function list(context: Context, json: boolean): Promise<void> {
  const { terminal } = context;
  await context.withFleet(async (fleet) => {
    const hosts = await fleet.hosts();
    if (json) {
      for (const host of hosts) await terminal.json(host);
      return;
    }
    const head = ['HOST', 'STATE', 'FREE', 'POLICIES', 'LABELS', 'VERSION', 'SEEN', 'LAST REFUSED'];
    await terminal.table([[...head, 'TAKES NOTHING NEW BECAUSE', 'TO MEND', 'PULLS'], ...hosts.map(toRow)]);
  });
}

function toRow(host: HostInfo): string[] {
  const { id, slots, free, held, policies, labels = {}, version, seenAt, gate, warnings = [], pulls = [] } = host;
  return [
    ...[id, stateOf(host), held === undefined ? `${free}/${slots}` : `${free}/${slots}, ${held} ask`],
    ...[policies.join(','), labelsText(labels, ','), version, seenAt, gate?.refusal?.at ?? '', whyClosed(host)],
    ...[warnings.join(' '), pulls.map(describePull).join(', ')],
  ];
}
