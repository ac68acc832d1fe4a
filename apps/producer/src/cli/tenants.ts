import { readFleetFile, type TenantInfo } from '@shellfleet/client';
import { DEFAULTS, namespaceSchema, parseOrThrow, tenantAclLine, tenantIdSchema } from '@shellfleet/protocol';
import type { Command } from 'commander';
import { z } from 'zod';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { describeSize } from './units.ts';

export function registerTenants(program: Command, context: Context): void {
  const tenants = program.command('tenants').description('tenants of the fleet');
  tenants
    .command('acl')
    .description('print the command that gives a tenant a user of Redis, which reaches no data of other tenants')
    .argument('<name>')
    .action((name: string) => printAcl(context, name, program.opts<ConnectionFlags>()));
  tenants
    .command('ls')
    .description('list the tenants, what they use, and their quotas')
    .addOption(jsonFlag())
    .action((flags: { json?: boolean }) => list(context, flags.json === true));
}

async function list({ terminal, withFleet }: Context, json: boolean): Promise<void> {
  await withFleet(async (fleet) => {
    const tenants = await fleet.tenants();
    if (json) {
      for (const tenant of tenants) await terminal.json(tenant);
      return;
    }
    const head = ['TENANT', 'WEIGHT', 'SESSIONS', 'WAITING', 'COMMANDS', 'DISK', 'PROCESSOR', 'OUTPUT'];
    await terminal.table([head, ...tenants.map(toRow)]);
  });
}

function toRow(tenant: TenantInfo): string[] {
  const { name, weight, openSessions, maxSessions, waitingSessions, waitingCommands, maxQueued, maxDiskBytes } = tenant;
  return [
    name,
    String(weight),
    ofQuota(String(openSessions), maxSessions),
    String(waitingSessions),
    ofQuota(waitingCommands === undefined ? '-' : String(waitingCommands), maxQueued),
    ofQuota(describeSize(tenant.diskBytes), maxDiskBytes === undefined ? undefined : describeSize(maxDiskBytes)),
    `${(tenant.processorMs / 1_000).toFixed(1)} s`,
    describeSize(tenant.outputBytes),
  ];
}

const ofQuota = (used: string, most: number | string | undefined) => (most === undefined ? used : `${used}/${most}`);

interface ConnectionFlags {
  redisUrl?: string;
  namespace?: string;
}

const requestSchema = z.object({ name: tenantIdSchema, namespace: namespaceSchema });

async function printAcl({ config, terminal }: Context, name: string, flags: ConnectionFlags): Promise<void> {
  const file = flags.redisUrl ? undefined : await readFleetFile(config.env);
  const namespace = flags.namespace || file?.namespace || DEFAULTS.connection.namespace;
  const request = parseOrThrow(requestSchema, { name, namespace }, 'COMMAND_INVALID', 'The access list');
  await terminal.line(tenantAclLine(request.namespace, request.name));
}
