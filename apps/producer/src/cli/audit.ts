import { isTampering } from '@shellfleet/sealing';
import { stateDirectory } from '@shellfleet/setup';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { type ExportFlags, exportStream } from './export-stream.ts';
import { type KeptHead, type Known, readAnchoredHeads, readKeptHeads } from './kept-heads.ts';
import { readAuditDirectories, readHostDirectories, readSealKeys, verifyDirectory } from './read-audit.ts';
import { type KeptStreamHead, type VerifiedStream, verifyStream } from './stream-chains.ts';
import { verifyHosts } from './verify-hosts.ts';

const TAMPERED = 1;

interface Flags extends ExportFlags {
  stateDir?: string;
  store?: Store;
  heads?: string;
  allowRemovedEarly?: boolean;
  json?: boolean;
}

type Store = 'file' | 'redis';
const STORES: readonly Store[] = ['file', 'redis'];

export function registerAudit(program: Command, context: Context): void {
  const audit = program.command('audit').description('what hosts have written down, on this machine or in Redis');
  const verb = (name: string, description: string) =>
    audit
      .command(name)
      .description(description)
      .addOption(new Option('--state-dir <directory>', 'state directory of the workers').env('SHELLFLEET_STATE_DIR'))
      .addOption(
        new Option('--store <where>', 'only the audits on this machine, or only those in Redis')
          .choices(STORES)
          .env('SHELLFLEET_AUDIT_STORE'),
      );
  verb('verify', 'look for records that were altered, are missing, or were cut off; exit code 1 when there are some')
    .addOption(
      new Option('--heads <file>', 'heads that `audit heads` printed, instead of those in Redis').env(
        'SHELLFLEET_AUDIT_HEADS',
      ),
    )
    .addOption(
      new Option(
        '--allow-removed-early',
        'accept that records were removed before their time, because there were too many',
      ).env('SHELLFLEET_AUDIT_ALLOW_REMOVED_EARLY'),
    )
    .addOption(jsonFlag())
    .action((flags: Flags) => verify(context, flags));
  verb('heads', 'print the head of each chain, as JSON, for a later `audit verify --heads`').action((flags: Flags) =>
    printHeads(context, flags),
  );
  verb('export', 'print all authentic records, as JSON')
    .addOption(
      new Option('-f, --follow', 'those in Redis, and those that come later, until Ctrl-C').env(
        'SHELLFLEET_AUDIT_FOLLOW',
      ),
    )
    .addOption(
      new Option(
        '--since <position>',
        'those in Redis behind this position of an export, or since 10m ago, or a time',
      ).env('SHELLFLEET_AUDIT_SINCE'),
    )
    .addOption(
      new Option('--codes', 'those in Redis as lines with their authentication codes').env('SHELLFLEET_AUDIT_CODES'),
    )
    .action((flags: Flags) => exportRecords(context, flags));
}

async function verify(context: Context, flags: Flags): Promise<void> {
  const { terminal, setExitCode } = context;
  const { files, stream } = await verifyStores(context, flags);
  const findings = [...(files?.findings ?? []), ...(stream?.findings ?? [])];
  for (const finding of findings) {
    const { type, host, tenant, where, message } = finding;
    if (flags.json) await terminal.json(finding);
    else await terminal.line(`${type}: host ${host}, tenant ${tenant}, ${where}: ${message}`);
  }
  const { elsewhere = [], uncompared = [] } = files ?? {};
  if (elsewhere.length > 0)
    terminal.say(
      `Not checked, because their audits are in other state directories: ${[...elsewhere].sort().join(', ')}.`,
    );
  if (uncompared.length > 0)
    terminal.say(
      `No head is kept of these hosts, so records that were cut off are not found: ${uncompared.join(', ')}.`,
    );
  const tampered = findings.filter(isTampering).length;
  const isUnexplained = !flags.allowRemovedEarly && findings.some(({ type }) => type === 'removed-early');
  if (tampered > 0 || isUnexplained) setExitCode(TAMPERED);
  if (isUnexplained)
    terminal.say(
      'Records were removed before their time. Who can make hosts record much can have it so: accept it with --allow-removed-early.',
    );
  const records = (files?.records ?? 0) + (stream?.records ?? 0);
  const chains = (files?.chains ?? 0) + (stream?.chains.length ?? 0);
  terminal.say(
    `${records} records of ${chains} ${chains === 1 ? 'chain' : 'chains'} were verified, and ${tampered} findings are signs of tampering.`,
  );
}

/** Verifies the audits on this machine and those in Redis. */
async function verifyStores({ config, withFleet }: Context, flags: Flags) {
  const stateDirectory = directoryOf(config.env, flags);
  const directories = await readHostDirectories(stateDirectory);
  const sealKeys = await readSealKeys(stateDirectory, config.env);
  const kept = flags.heads === undefined ? undefined : await readKeptHeads(flags.heads);
  let known: Known | undefined = kept;
  let stream: VerifiedStream | undefined;
  const usesRedis = flags.store === 'redis' || (flags.store === undefined && kept?.streams.length !== 0);
  if (kept === undefined || usesRedis)
    await withFleet(async (fleet) => {
      known ??= await readAnchoredHeads(fleet, stateDirectory, directories);
      if (usesRedis) stream = await verifyStream(fleet, sealKeys, kept?.streams);
    });
  const { hosts, elsewhere } = known ?? { hosts: [], elsewhere: [] };
  const isUnused = directories.length + hosts.length + elsewhere.length === 0 && (stream?.chains.length ?? 0) > 0;
  if (flags.store === 'redis' || (flags.store === undefined && isUnused)) return { stream };
  return { stream, files: { ...verifyHosts({ stateDirectory, directories, hosts, sealKeys }), elsewhere } };
}

async function printHeads({ config, terminal, withFleet }: Context, flags: Flags): Promise<void> {
  const stateDirectory = directoryOf(config.env, flags);
  const sealKeys = await readSealKeys(stateDirectory, config.env);
  const directories = await readAuditDirectories(stateDirectory);
  if (storeOf(flags, directories) === 'redis')
    return withFleet(async (fleet) => {
      const { namespace, chains } = await verifyStream(fleet, sealKeys);
      for (const { name, head, at } of chains)
        if (at !== undefined)
          await terminal.json({ namespace, ...name, ...head, at } satisfies KeptHead & KeptStreamHead);
    });
  for (const directory of directories) {
    const { namespace, host, tenant } = directory;
    await terminal.json({
      namespace,
      host,
      tenant,
      ...verifyDirectory(directory, sealKeys, []).head,
    } satisfies KeptHead);
  }
}

async function exportRecords({ config, terminal, withFleet }: Context, flags: Flags): Promise<void> {
  const stateDirectory = directoryOf(config.env, flags);
  const sealKeys = await readSealKeys(stateDirectory, config.env);
  const directories = await readAuditDirectories(stateDirectory);
  if (storeOf(flags, directories) === 'redis')
    return withFleet((fleet) => exportStream(fleet, terminal, sealKeys, flags));
  for (const directory of directories) {
    const { host, tenant } = directory;
    const records: object[] = [];
    verifyDirectory(directory, sealKeys, [], ({ n, at, event }) => records.push({ host, tenant, n, at, ...event }));
    for (const record of records) await terminal.json(record);
  }
}

/** Returns the store whose records are printed: that of this machine, unless it has none or Redis is asked for. */
function storeOf({ store, follow, since, codes }: Flags, directories: readonly unknown[]): Store {
  if (store !== undefined) return store;
  return follow || since !== undefined || codes || directories.length === 0 ? 'redis' : 'file';
}

function directoryOf(env: NodeJS.ProcessEnv, { stateDir }: Flags): string {
  return stateDir || stateDirectory(env);
}
