import type { Command } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';

export function registerHosts(program: Command, context: Context): void {
  program
    .command('hosts')
    .description('hosts of the fleet')
    .command('ls')
    .description('list hosts')
    .addOption(jsonFlag())
    .action((flags: { json?: boolean }) => list(context, flags.json === true));
}

async function list(context: Context, json: boolean): Promise<void> {
  const { terminal } = context;
  await context.withFleet(async (fleet) => {
    const hosts = await fleet.hosts();
    if (json) {
      for (const host of hosts) await terminal.json(host);
      return;
    }
    const rows = hosts.map(({ id, state, slots, free, policies, version, seenAt, problems = [] }) => [
      id,
      state,
      `${free}/${slots}`,
      policies.join(','),
      version,
      seenAt,
      problems.join(' '),
    ]);
    await terminal.table([
      ['HOST', 'STATE', 'FREE', 'POLICIES', 'VERSION', 'SEEN', 'TAKES NOTHING NEW BECAUSE'],
      ...rows,
    ]);
  });
}
