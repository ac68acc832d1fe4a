import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type AuditFinding, isTampering } from '@shellfleet/mailbox';
import { type AuditHead, auditHeadSchema, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { stateFolder } from '@shellfleet/setup';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import {
  type AuditFolder,
  findMissingAudits,
  type HostAudit,
  readAuditFolders,
  readHostAudits,
  readSealKeys,
  verifyFolder,
} from './read-audit.ts';

const TAMPERED = 1;

interface Flags {
  stateDir?: string;
  heads?: string;
  json?: boolean;
}

const keptHeadSchema = auditHeadSchema.extend({ namespace: z.string(), host: z.string(), tenant: z.string() });
type KeptHead = z.infer<typeof keptHeadSchema>;

export function registerAudit(program: Command, context: Context): void {
  const audit = program.command('audit').description('what the hosts of this machine have written down');
  const stateDir = () => new Option('--state-dir <folder>', 'state folder of the workers').env('SHELLFLEET_STATE_DIR');
  audit
    .command('verify')
    .description('look for records that were altered, are missing, or were cut off; exit code 1 when there are some')
    .addOption(stateDir())
    .addOption(
      new Option('--heads <file>', 'heads that `audit heads` printed, instead of those in Redis').env(
        'SHELLFLEET_AUDIT_HEADS',
      ),
    )
    .addOption(jsonFlag())
    .action((flags: Flags) => verify(context, flags));
  audit
    .command('heads')
    .description('print the head of each chain, as JSON, for a later `audit verify --heads`')
    .addOption(stateDir())
    .action((flags: Flags) => printHeads(context, flags));
  audit
    .command('export')
    .description('print all authentic records, as JSON')
    .addOption(stateDir())
    .action((flags: Flags) => exportRecords(context, flags));
}

async function verify({ config, terminal, withFleet, setExitCode }: Context, flags: Flags): Promise<void> {
  const audits = await readHostAudits(folderOf(config.env, flags));
  const sealKeys = await readSealKeys(folderOf(config.env, flags), config.env);
  const findings: (AuditFinding & { host: string; tenant: string })[] = [];
  for (const where of await findMissingAudits(folderOf(config.env, flags)))
    findings.push({
      type: 'missing',
      host: basename(dirname(where)),
      tenant: '*',
      where,
      message: 'the audit is missing',
    });
  let records = 0;
  let chains = 0;
  const check = async (headsOf: (audit: HostAudit) => Promise<KeptHeads>) => {
    for (const audit of audits) {
      const heads = await headsOf(audit);
      for (const chain of withRemoved(audit, heads)) {
        const verified = verifyFolder(chain, sealKeys, heads.get(chain.tenant) ?? []);
        records += verified.records;
        chains += 1;
        const { host, tenant } = chain;
        for (const { where, ...finding } of verified.findings)
          findings.push({ host, tenant, where: where || join(audit.folder, `t-${tenant}`), ...finding });
      }
    }
  };
  if (flags.heads === undefined)
    await withFleet((fleet) =>
      check(async ({ host, namespace }) => {
        const heads = Object.entries(await fleet.auditHeads({ id: host, namespace }));
        return new Map(heads.map(([tenant, head]) => [tenant, [head]]));
      }),
    );
  else {
    const kept = await readKeptHeads(flags.heads);
    await check(async ({ namespace, host }) => {
      const own = kept.filter((head) => head.namespace === namespace && head.host === host);
      return new Map(own.map(({ tenant }) => [tenant, own.filter((head) => head.tenant === tenant)]));
    });
  }
  for (const finding of findings) {
    const { type, host, tenant, where, message } = finding;
    if (flags.json) await terminal.json(finding);
    else await terminal.line(`${type}: host ${host}, tenant ${tenant}, ${where}: ${message}`);
  }
  const tampered = findings.filter(isTampering).length;
  if (tampered > 0) setExitCode(TAMPERED);
  terminal.say(
    `${records} records of ${chains} chains were verified, and ${tampered} findings are signs of tampering.`,
  );
}

/** The heads that were kept of a host's chains, by tenant. */
type KeptHeads = ReadonlyMap<string, readonly AuditHead[]>;

/** The chains of a host, and those of which only a head is left. */
function withRemoved({ namespace, host, chains }: HostAudit, heads: KeptHeads): AuditFolder[] {
  const removed = [...heads.keys()].filter((tenant) => !chains.some((chain) => chain.tenant === tenant));
  return [...chains, ...removed.map((tenant) => ({ namespace, host, tenant, segments: [] }))];
}

async function printHeads({ config, terminal }: Context, flags: Flags): Promise<void> {
  const sealKeys = await readSealKeys(folderOf(config.env, flags), config.env);
  for (const folder of await readAuditFolders(folderOf(config.env, flags))) {
    const { namespace, host, tenant } = folder;
    await terminal.json({ namespace, host, tenant, ...verifyFolder(folder, sealKeys, []).head } satisfies KeptHead);
  }
}

async function exportRecords({ config, terminal }: Context, flags: Flags): Promise<void> {
  const sealKeys = await readSealKeys(folderOf(config.env, flags), config.env);
  for (const folder of await readAuditFolders(folderOf(config.env, flags))) {
    const { host, tenant } = folder;
    const records: object[] = [];
    verifyFolder(folder, sealKeys, [], ({ n, at, event }) => records.push({ host, tenant, n, at, ...event }));
    for (const record of records) await terminal.json(record);
  }
}

function folderOf(env: NodeJS.ProcessEnv, { stateDir }: Flags): string {
  return stateDir || stateFolder(env);
}

async function readKeptHeads(path: string): Promise<KeptHead[]> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new ShellfleetError('COMMAND_INVALID', `--heads: ${path} cannot be read.`, { issues: [] }, { cause });
  });
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const head = keptHeadSchema.safeParse(tryJson(line)).data;
      if (head !== undefined) return head;
      throw new ShellfleetError('COMMAND_INVALID', `--heads: ${path} has a line that \`audit heads\` did not print.`, {
        issues: [{ path: 'heads', message: 'must be lines of `audit heads`' }],
      });
    });
}
