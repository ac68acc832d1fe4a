import type { ApiKeyInfo, Scope } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { parseDuration } from './units.ts';

interface CreateFlags {
  scopes: string;
  name?: string;
  expires?: number;
  json?: boolean;
}

export function registerKeys(program: Command, context: Context): void {
  const keys = program.command('keys').description('API keys of the fleet, by which programs use it over HTTP and MCP');
  keys
    .command('create')
    .description('make a key for the tenant, and print it this one time')
    .addOption(
      new Option('--scopes <list>', 'what it may do, of submit,read,approve,admin')
        .env('SHELLFLEET_KEYS_SCOPES')
        .default('submit,read'),
    )
    .addOption(new Option('--name <name>', 'name for people; by default user and machine').env('SHELLFLEET_KEYS_NAME'))
    .addOption(
      new Option('--expires <time>', 'time after which it expires: 12h, 30d')
        .env('SHELLFLEET_KEYS_EXPIRES')
        .argParser(parseDuration),
    )
    .addOption(jsonFlag())
    .action((flags: CreateFlags) => create(context, flags));
  keys
    .command('ls')
    .description('list the keys of all tenants')
    .addOption(jsonFlag())
    .action((flags: { json?: boolean }) => list(context, flags.json === true));
  keys
    .command('revoke')
    .description('revoke a key, by its id or its name')
    .argument('<key>')
    .action((key: string) => revoke(context, key));
}

async function create({ terminal, withFleet }: Context, { scopes, name, expires, json }: CreateFlags): Promise<void> {
  await withFleet(async (fleet) => {
    const created = await fleet.keys.create({
      // The SDK refuses words that are no scopes.
      scopes: scopes.split(',').map((scope) => scope.trim() as Scope),
      ...(name ? { name } : {}),
      ...(expires === undefined ? {} : { expiresAt: new Date(Date.now() + expires) }),
    });
    if (json) return terminal.json(created);
    await terminal.line(created.key);
    terminal.say(
      `This is the only time that the key ${created.name} (${created.id}) is shown. It may ${created.scopes.join(', ')} in the tenant ${created.tenant}, until ${created.expiresAt === undefined ? 'it is revoked' : describeTime(created.expiresAt)}. Give it to its program: export SHELLFLEET_API_KEY=…`,
    );
  });
}

async function list({ terminal, withFleet }: Context, json: boolean): Promise<void> {
  await withFleet(async (fleet) => {
    const keys = await fleet.keys.list();
    if (json) {
      for (const key of keys) await terminal.json(key);
      return;
    }
    const head = ['ID', 'NAME', 'TENANT', 'SCOPES', 'MADE', 'LAST USED', 'EXPIRES'];
    await terminal.table([head, ...keys.map(toRow)]);
  });
}

function toRow({ id, name, tenant, scopes, createdAt, lastUsedAt, expiresAt }: ApiKeyInfo): string[] {
  const isOver = expiresAt !== undefined && Date.parse(expiresAt) <= Date.now();
  return [
    ...[id, name, tenant, scopes.join(','), describeTime(createdAt)],
    lastUsedAt === undefined ? '-' : describeTime(lastUsedAt),
    expiresAt === undefined ? '-' : isOver ? 'has expired' : describeTime(expiresAt),
  ];
}

/** Formats a time of ISO 8601 without its seconds. */
const describeTime = (time: string): string => time.replace(/:\d\d\.\d+Z$/, 'Z');

async function revoke({ terminal, withFleet }: Context, key: string): Promise<void> {
  await withFleet(async (fleet) => {
    const id = await fleet.keys.revoke(key);
    terminal.say(`The key ${id} is revoked. Servers refuse it and end its streams within a second.`);
  });
}
