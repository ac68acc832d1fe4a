import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AuditHead, type AuditRecord, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { type AuditSegment, auditKeys, verifyAudit } from '@shellfleet/sealing';
import { z } from 'zod';

/** Chain of one tenant on one host. */
export interface AuditDirectory {
  namespace: string;
  host: string;
  tenant: string;
  segments: AuditSegment[];
}

const chainOfSchema = z.object({ namespace: z.string(), host: z.string() });

export interface HostAudit {
  namespace: string;
  host: string;
  chains: AuditDirectory[];
}

export interface HostDirectory {
  name: string;
  path: string;
  /** Id that the host generated, unless one was chosen. */
  ownId: string | undefined;
  /** Secret of the host. */
  key: string | undefined;
  /** Path of the host's audit, which a worker makes when it starts. */
  auditPath: string;
  audit: HostAudit | undefined;
}

/** Reads the directories of all hosts in this state directory. Skips those without a host and an audit. */
export async function readHostDirectories(stateDirectory: string): Promise<HostDirectory[]> {
  const hosts = await readdir(join(stateDirectory, 'hosts')).catch(() => []);
  const directories = await Promise.all(
    hosts.sort().map((name) => readHostDirectory(join(stateDirectory, 'hosts', name), name)),
  );
  return directories.filter(({ key, audit }) => key !== undefined || audit !== undefined);
}

export async function readAuditDirectories(stateDirectory: string): Promise<AuditDirectory[]> {
  return (await readHostDirectories(stateDirectory)).flatMap(({ audit }) => audit?.chains ?? []);
}

/** Reads the id by which Redis knows the hosts of this state directory. */
export const readStateDirectoryId = (stateDirectory: string) => readText(join(stateDirectory, 'id'));

async function readHostDirectory(path: string, name: string): Promise<HostDirectory> {
  const auditPath = join(path, 'audit');
  const [ownId, key, audit] = await Promise.all([
    readText(join(path, 'id')),
    readText(join(path, 'key')),
    readHostAudit(auditPath),
  ]);
  return { name, path, ownId, key, auditPath, audit };
}

async function readHostAudit(directory: string): Promise<HostAudit | undefined> {
  const of = chainOfSchema.safeParse(tryJson(await readText(join(directory, 'chain-of.json')))).data;
  if (of === undefined) return undefined;
  const names = (await readdir(directory)).filter((name) => name.startsWith('t-')).sort();
  const chains = await Promise.all(
    names.map(async (name) => ({ ...of, tenant: name.slice(2), segments: await readSegments(join(directory, name)) })),
  );
  return { ...of, chains };
}

const readText = (path: string) =>
  readFile(path, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  );

async function readSegments(directory: string): Promise<AuditSegment[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.jsonl')).sort();
  return Promise.all(
    names.map(async (name) => ({ name: join(directory, name), text: await readFile(join(directory, name), 'utf8') })),
  );
}

export function verifyDirectory(
  { segments, ...of }: AuditDirectory,
  sealKeys: readonly string[],
  heads: readonly AuditHead[],
  onRecord?: (record: AuditRecord) => void,
): ReturnType<typeof verifyAudit> {
  return verifyAudit(segments, auditKeys(sealKeys, of), heads, onRecord);
}

/** Reads the keys of SHELLFLEET_SEAL_KEY, else those of the state directory. */
export async function readSealKeys(stateDirectory: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const path = join(stateDirectory, 'seal-key');
  const given = env.SHELLFLEET_SEAL_KEY || (await readFile(path, 'utf8').catch(() => ''));
  const keys = given.split(',').flatMap((key) => key.trim() || []);
  if (keys.length > 0) return keys;
  throw new ShellfleetError('SEAL_KEY_UNKNOWN', `There is no ${path}, and SHELLFLEET_SEAL_KEY is not set.`);
}
