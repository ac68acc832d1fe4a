import { readFile } from 'node:fs/promises';
import type { Fleet } from '@shellfleet/client';
import { type AuditHead, auditHeadSchema, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';
import { type HostDirectory, readStateDirectoryId } from './read-audit.ts';
import type { KeptStreamHead } from './stream-chains.ts';

const keptHeadSchema = auditHeadSchema.extend({ namespace: z.string(), host: z.string(), tenant: z.string() });
export type KeptHead = z.infer<typeof keptHeadSchema>;
const keptStreamHeadSchema = keptHeadSchema.extend({ boot: z.string(), at: z.string() });

/** Heads of a host's audit from Redis or a kept file, with which the audit in the state directory is compared. */
export interface KnownHost {
  namespace: string;
  host: string;
  /** Heads by tenant. */
  heads: ReadonlyMap<string, readonly AuditHead[]>;
}

export interface Known {
  /** Hosts whose audits must be in the state directory. */
  hosts: KnownHost[];
  /** Hosts whose audits are in other state directories. */
  elsewhere: string[];
}

export interface KeptHeads extends Known {
  /** Heads of chains in Redis. */
  streams: KeptStreamHead[];
}

/**
 * Reads the heads of a file that `audit heads` printed. Each host in the file must have an audit here, or its chains in
 * Redis.
 */
export async function readKeptHeads(path: string): Promise<KeptHeads> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new ShellfleetError('COMMAND_INVALID', `--heads: ${path} cannot be read.`, { issues: [] }, { cause });
  });
  const hosts = new Map<string, KnownHost & { heads: Map<string, AuditHead[]> }>();
  const streams: KeptStreamHead[] = [];
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const { data: ofStream } = keptStreamHeadSchema.safeParse(tryJson(line));
    if (ofStream !== undefined) {
      streams.push(ofStream);
      continue;
    }
    const { namespace, host, tenant, n, mac } = parseKeptHead(line, path);
    const key = JSON.stringify([namespace, host]);
    const known = hosts.get(key) ?? { namespace, host, heads: new Map() };
    hosts.set(key, known);
    known.heads.set(tenant, [...(known.heads.get(tenant) ?? []), { n, mac }]);
  }
  return { hosts: [...hosts.values()], elsewhere: [], streams };
}

function parseKeptHead(line: string, path: string): KeptHead {
  const head = keptHeadSchema.safeParse(tryJson(line)).data;
  if (head !== undefined) return head;
  throw new ShellfleetError('COMMAND_INVALID', `--heads: ${path} has a line that \`audit heads\` did not print.`, {
    issues: [{ path: 'heads', message: 'must be lines of `audit heads`' }],
  });
}

/**
 * Reads the heads of audits in Redis. The audit of a host must be here if Redis last saw the host in this state
 * directory, or in the same directory as a host whose audit is here.
 */
export async function readAnchoredHeads(
  fleet: Fleet,
  stateDirectory: string,
  directories: readonly HostDirectory[],
): Promise<Known> {
  const isHere = ({ namespace, host }: { namespace: string; host: string }) =>
    directories.some(({ audit }) => audit?.host === host && audit.namespace === namespace);
  const places = await fleet.auditPlaces();
  const here = new Set([
    await readStateDirectoryId(stateDirectory),
    ...places.filter(isHere).map(({ stateDirectoryId }) => stateDirectoryId),
  ]);
  const hosts = await Promise.all(
    places
      .filter(({ stateDirectoryId }) => here.has(stateDirectoryId))
      .map(async ({ namespace, host }) => {
        const heads = Object.entries(await fleet.auditHeads({ namespace, id: host }));
        return { namespace, host, heads: new Map(heads.map(([tenant, head]) => [tenant, [head]])) };
      }),
  );
  const elsewhere = places.filter(({ stateDirectoryId }) => !here.has(stateDirectoryId)).map(({ host }) => host);
  return { hosts, elsewhere };
}
