import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AuditSegment, auditKeys, verifyAudit } from '@shellfleet/mailbox';
import { type AuditHead, type AuditRecord, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';

/** The chain of one tenant on one host, as its files hold it. */
export interface AuditFolder {
  namespace: string;
  host: string;
  tenant: string;
  segments: AuditSegment[];
}

const chainOfSchema = z.object({ namespace: z.string(), host: z.string() });

/** The audit of one host. */
export interface HostAudit {
  namespace: string;
  host: string;
  folder: string;
  chains: AuditFolder[];
}

/** The audits of all hosts that have this state folder. */
export async function readHostAudits(stateFolder: string): Promise<HostAudit[]> {
  const hosts = await readdir(join(stateFolder, 'hosts')).catch(() => []);
  const audits = await Promise.all(hosts.sort().map((name) => readHost(join(stateFolder, 'hosts', name, 'audit'))));
  return audits.flat();
}

/** The folders of hosts without an audit: each worker begins one when it starts. */
export async function findMissingAudits(stateFolder: string): Promise<string[]> {
  const hosts = await readdir(join(stateFolder, 'hosts')).catch(() => []);
  const missing = await Promise.all(
    hosts.sort().map(async (name) => {
      const folder = join(stateFolder, 'hosts', name);
      const isHost = (await readdir(folder).catch((): string[] => [])).includes('key');
      return isHost && (await readHost(join(folder, 'audit'))).length === 0 ? [join(folder, 'audit')] : [];
    }),
  );
  return missing.flat();
}

export async function readAuditFolders(stateFolder: string): Promise<AuditFolder[]> {
  return (await readHostAudits(stateFolder)).flatMap(({ chains }) => chains);
}

async function readHost(folder: string): Promise<HostAudit[]> {
  const text = await readFile(join(folder, 'chain-of.json'), 'utf8').catch(() => undefined);
  const of = chainOfSchema.safeParse(tryJson(text)).data;
  if (of === undefined) return [];
  const names = (await readdir(folder)).filter((name) => name.startsWith('t-')).sort();
  const chains = await Promise.all(
    names.map(async (name) => ({ ...of, tenant: name.slice(2), segments: await readSegments(join(folder, name)) })),
  );
  return [{ ...of, folder, chains }];
}

async function readSegments(folder: string): Promise<AuditSegment[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.jsonl')).sort();
  return Promise.all(
    names.map(async (name) => ({ name: join(folder, name), text: await readFile(join(folder, name), 'utf8') })),
  );
}

export function verifyFolder(
  { segments, ...of }: AuditFolder,
  sealKeys: readonly string[],
  heads: readonly AuditHead[],
  onRecord?: (record: AuditRecord) => void,
): ReturnType<typeof verifyAudit> {
  return verifyAudit(segments, auditKeys(sealKeys, of), heads, onRecord);
}

/** Those of SHELLFLEET_SEAL_KEY, else that of the state folder. */
export async function readSealKeys(stateFolder: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const path = join(stateFolder, 'seal-key');
  const given = env.SHELLFLEET_SEAL_KEY || (await readFile(path, 'utf8').catch(() => ''));
  const keys = given.split(',').flatMap((key) => key.trim() || []);
  if (keys.length > 0) return keys;
  throw new ShellfleetError('SEAL_KEY_UNKNOWN', `There is no ${path}, and SHELLFLEET_SEAL_KEY is not set.`);
}
