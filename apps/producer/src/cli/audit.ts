import { isTampering } from '@shellfleet/sealing';
import { stateDirectory } from '@shellfleet/setup';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { type KeptHead, type Known, readAnchoredHeads, readKeptHeads } from './kept-heads.ts';
import {
  type HostDirectory,
  readAuditDirectories,
  readHostDirectories,
  readSealKeys,
  verifyDirectory,
} from './read-audit.ts';
import { verifyHosts } from './verify-hosts.ts';

const TAMPERED = 1;

interface Flags {
  stateDir?: string;
  heads?: string;
  json?: boolean;
}

export function registerAudit(program: Command, context: Context): void {
  const audit = program.command('audit').description('what the hosts of this machine have written down');
  const stateDir = () =>
    new Option('--state-dir <directory>', 'state directory of the workers').env('SHELLFLEET_STATE_DIR');
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
  const stateDirectory = directoryOf(config.env, flags);
  const directories = await readHostDirectories(stateDirectory);
  const sealKeys = await readSealKeys(stateDirectory, config.env);
  const { hosts, elsewhere } = await readKnown(withFleet, stateDirectory, directories, flags.heads);
  const { findings, records, chains, uncompared } = verifyHosts({ stateDirectory, directories, hosts, sealKeys });
  for (const finding of findings) {
    const { type, host, tenant, where, message } = finding;
    if (flags.json) await terminal.json(finding);
    else await terminal.line(`${type}: host ${host}, tenant ${tenant}, ${where}: ${message}`);
  }
  if (elsewhere.length > 0)
    terminal.say(`Not checked, because their audits are in other state directories: ${elsewhere.sort().join(', ')}.`);
  if (uncompared.length > 0)
    terminal.say(
      `No head is kept of these hosts, so records that were cut off are not found: ${uncompared.join(', ')}.`,
    );
  const tampered = findings.filter(isTampering).length;
  if (tampered > 0) setExitCode(TAMPERED);
  terminal.say(
    `${records} records of ${chains} chains were verified, and ${tampered} findings are signs of tampering.`,
  );
}

async function readKnown(
  withFleet: Context['withFleet'],
  stateDirectory: string,
  directories: readonly HostDirectory[],
  headsPath: string | undefined,
): Promise<Known> {
  if (headsPath !== undefined) return readKeptHeads(headsPath);
  let known: Known = { hosts: [], elsewhere: [] };
  await withFleet(async (fleet) => {
    known = await readAnchoredHeads(fleet, stateDirectory, directories);
  });
  return known;
}

async function printHeads({ config, terminal }: Context, flags: Flags): Promise<void> {
  const sealKeys = await readSealKeys(directoryOf(config.env, flags), config.env);
  for (const directory of await readAuditDirectories(directoryOf(config.env, flags))) {
    const { namespace, host, tenant } = directory;
    await terminal.json({
      namespace,
      host,
      tenant,
      ...verifyDirectory(directory, sealKeys, []).head,
    } satisfies KeptHead);
  }
}

async function exportRecords({ config, terminal }: Context, flags: Flags): Promise<void> {
  const sealKeys = await readSealKeys(directoryOf(config.env, flags), config.env);
  for (const directory of await readAuditDirectories(directoryOf(config.env, flags))) {
    const { host, tenant } = directory;
    const records: object[] = [];
    verifyDirectory(directory, sealKeys, [], ({ n, at, event }) => records.push({ host, tenant, n, at, ...event }));
    for (const record of records) await terminal.json(record);
  }
}

function directoryOf(env: NodeJS.ProcessEnv, { stateDir }: Flags): string {
  return stateDir || stateDirectory(env);
}
