import { readFile } from 'node:fs/promises';
import { type AuditFinding, isTampering } from '@shellfleet/mailbox';
import { type AuditHead, auditHeadSchema, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { stateFolder } from '@shellfleet/setup';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { type AuditFolder, readAuditFolders, readSealKeys, verifyFolder } from './read-audit.ts';

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
  const folders = await readAuditFolders(folderOf(config.env, flags));
  const sealKeys = await readSealKeys(folderOf(config.env, flags), config.env);
  const findings: (AuditFinding & { host: string; tenant: string })[] = [];
  let records = 0;
  const check = async (headsOf: (folder: AuditFolder) => Promise<AuditHead[]>) => {
    for (const folder of folders) {
      const verified = verifyFolder(folder, sealKeys, await headsOf(folder));
      records += verified.records;
      const { host, tenant } = folder;
      for (const finding of verified.findings) findings.push({ host, tenant, ...finding });
    }
  };
  if (flags.heads === undefined)
    await withFleet((fleet) =>
      check(async ({ host, tenant, namespace }) => {
        const head = (await fleet.auditHeads({ id: host, namespace }))[tenant];
        return head === undefined ? [] : [head];
      }),
    );
  else {
    const kept = await readKeptHeads(flags.heads);
    await check(async (folder) =>
      kept.filter(
        ({ namespace, host, tenant }) =>
          namespace === folder.namespace && host === folder.host && tenant === folder.tenant,
      ),
    );
  }
  for (const finding of findings) {
    const { type, host, tenant, where, message } = finding;
    if (flags.json) await terminal.json(finding);
    else await terminal.line(`${type}: host ${host}, tenant ${tenant}${where && `, ${where}`}: ${message}`);
  }
  const tampered = findings.filter(isTampering).length;
  if (tampered > 0) setExitCode(TAMPERED);
  terminal.say(
    `${records} records of ${folders.length} chains were verified, and ${tampered} findings are signs of tampering.`,
  );
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
