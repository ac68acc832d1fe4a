import { readFile } from 'node:fs/promises';
import { DocumentError, parseDocument } from '@shellfleet/policy';
import {
  type FleetConfiguration,
  fleetConfigurationSchema,
  ShellfleetError,
  type TenantConfiguration,
} from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { describeDuration, describeSize } from './units.ts';

export function registerConfig(program: Command, context: Context): void {
  const config = program.command('config').description('configuration of the whole fleet: its tenants');
  config
    .command('apply')
    .description("replace the fleet's configuration by that of a file, for all hosts")
    .argument('<file>')
    .addOption(new Option('--by <name>', 'who applies it, as `config show` shows').env('SHELLFLEET_CONFIG_BY'))
    .action((file: string, flags: { by?: string }) => apply(context, file, flags.by));
  config
    .command('show')
    .description("show the fleet's configuration, and which hosts have not read it")
    .addOption(jsonFlag())
    .action((flags: { json?: boolean }) => show(context, flags.json === true));
  config
    .command('check')
    .description('check a file without applying it')
    .argument('<file>')
    .action(async (file: string) => {
      const { tenants } = await readConfiguration(file);
      context.terminal.say(`${file} is valid: ${countTenants(tenants)}.`);
    });
}

async function apply({ terminal, withFleet }: Context, file: string, appliedBy: string | undefined): Promise<void> {
  const configuration = await readConfiguration(file);
  await withFleet(async (fleet) => {
    const revision = await fleet.applyConfiguration(configuration, { appliedBy });
    terminal.say(`Revision ${revision} is applied: ${countTenants(configuration.tenants)}.`);
  });
}

/** Reads a file. Throws COMMAND_INVALID with the file, the line and the field. */
async function readConfiguration(file: string): Promise<FleetConfiguration> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new ShellfleetError('COMMAND_INVALID', `${file} cannot be read: ${error.message}`);
  });
  try {
    return parseDocument(text, fleetConfigurationSchema, file);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new ShellfleetError('COMMAND_INVALID', error.message);
  }
}

const countTenants = ({ length }: FleetConfiguration['tenants']) => (length === 1 ? '1 tenant' : `${length} tenants`);

async function show({ terminal, withFleet }: Context, json: boolean): Promise<void> {
  await withFleet(async (fleet) => {
    const [applied, hosts] = await Promise.all([fleet.configuration(), fleet.hosts()]);
    const revision = applied?.revision ?? 0;
    const hostsBehind = hosts
      .filter(({ state, configuration }) => state !== 'unreachable' && configuration !== revision)
      .map((host) => ({ id: host.id, revision: host.configuration }));
    if (json) return terminal.json({ ...applied, revision, hostsBehind });
    if (applied === undefined) terminal.say('No configuration was applied: every tenant has weight 1 and no quota.');
    else {
      terminal.say(`Revision ${revision}, applied by ${applied.appliedBy} at ${applied.appliedAt}.`);
      const head = ['TENANT', 'WEIGHT', 'MOST SESSIONS', 'MOST WAITING', 'MOST DISK', 'LONGEST IDLE'];
      await terminal.table([head, ...applied.configuration.tenants.map(toRow)]);
    }
    for (const host of hostsBehind)
      terminal.say(
        `${host.id} has not read it: it uses revision ${host.revision}. hosts ls shows what is wrong there.`,
      );
  });
}

function toRow(tenant: TenantConfiguration): string[] {
  const { name, weight, maxSessions, maxQueued, maxDiskBytes, idleTimeoutMs } = tenant;
  return [
    ...[name, String(weight), String(maxSessions ?? ''), String(maxQueued ?? '')],
    maxDiskBytes === undefined ? '' : describeSize(maxDiskBytes),
    idleTimeoutMs === undefined ? '' : describeDuration(idleTimeoutMs),
  ];
}
