import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type AuditRecord, readLines, ShellfleetError } from '@shellfleet/protocol';
import { parseAuditLine } from '@shellfleet/sealing';

// Reads the audits of this machine's hosts, without verification.

/** Returns the audits of the hosts below a state directory. Throws COMMAND_INVALID when there is none. */
export async function auditsOfMachine(stateDirectory: string): Promise<string[]> {
  const hosts = join(stateDirectory, 'hosts');
  const found = (await readdir(hosts).catch(() => [])).map((host) => join(hosts, host, 'audit'));
  const audits: string[] = [];
  for (const directory of found) if (await stat(directory).catch(() => undefined)) audits.push(directory);
  if (audits.length > 0) return audits;
  throw new ShellfleetError(
    'COMMAND_INVALID',
    `No host of this machine has an audit below ${stateDirectory}. Run this where the worker runs, as its user, or name the directory with --audit.`,
  );
}

/** Reads the records of all tenants of a host, in each tenant's order. Skips files last written before `since` (ms). */
export async function* readAudit(
  directory: string,
  since: number,
): AsyncGenerator<{ tenant: string; record: AuditRecord }> {
  for (const name of await list(directory)) {
    if (!name.startsWith('t-')) continue;
    for (const file of (await list(join(directory, name))).filter((found) => found.endsWith('.jsonl')).sort()) {
      const path = join(directory, name, file);
      if ((await stat(path)).mtimeMs < since) continue;
      for await (const line of readLines(createReadStream(path), path)) {
        const record = parseAuditLine(line.toString(), [])?.record;
        if (record !== undefined) yield { tenant: name.slice(2), record };
      }
    }
  }
}

function list(directory: string): Promise<string[]> {
  return readdir(directory).catch((error: Error) => {
    throw new ShellfleetError('COMMAND_INVALID', `The audit ${directory} cannot be read: ${error.message}`);
  });
}
