import { readFile } from 'node:fs/promises';
import { compileRules, DocumentError, parseDocument } from '@shellfleet/policy';
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
  const config = program.command('config').description('configuration of the whole fleet: its tenants and rules');
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
      context.terminal.say(`${file} is valid: ${describe(await readConfiguration(file))}.`);
    });
}

async function apply({ terminal, withFleet }: Context, file: string, by: string | undefined): Promise<void> {
  const configuration = await readConfiguration(file);
  await withFleet(async (fleet) => {
    // An empty variable counts as unset.
    const revision = await fleet.applyConfiguration(configuration, by ? { appliedBy: by } : {});
    terminal.say(`Revision ${revision} is applied: ${describe(configuration)}.`);
  });
}

/** Reads a file. Throws COMMAND_INVALID with the file, the line and the field, or RULES_INVALID. */
async function readConfiguration(file: string): Promise<FleetConfiguration> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new ShellfleetError('COMMAND_INVALID', `${file} cannot be read: ${error.message}`);
  });
  if (text.replace(/#.*$/gm, '').trim() === '')
    throw new ShellfleetError('COMMAND_INVALID', `${file} is empty. Write {} to give every tenant the defaults.`);
  try {
    const configuration = parseDocument(text, fleetConfigurationSchema, file);
    compileRules(configuration.rules, { source: file });
    return configuration;
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new ShellfleetError('COMMAND_INVALID', error.message);
  }
}

const describe = ({ tenants, rules, approvals }: FleetConfiguration) =>
  [
    count(tenants, 'tenant'),
    ...(rules.length === 0 ? [] : [count(rules, 'rule')]),
    ...(approvals?.self ? ['callers may answer their own questions'] : []),
  ].join(', ');

const count = ({ length }: readonly unknown[], what: string) => `${length} ${what}${length === 1 ? '' : 's'}`;

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
      const { rules, approvals } = applied.configuration;
      if (rules.length > 0) terminal.say(`It has ${count(rules, 'rule')} about commands, which --json shows.`);
      if (approvals?.self) terminal.say('Callers may answer questions about what they submitted themselves.');
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
