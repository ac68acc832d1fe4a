import {
  type AuditChainName,
  type AuditHead,
  fleetKeys,
  hostKeys,
  parseAuditChain,
  storedAuditHeadSchema,
  toAuditChain,
  tryJson,
} from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlainScript } from '../scripts.ts';

// The audit of hosts that keep it in Redis: one stream of the fleet, with a chain for each tenant of each process.

const append = definePlainScript('upkeep/append-audit');
const listOld = definePlainScript('upkeep/list-old-audit');
const removeOld = definePlainScript('upkeep/remove-old-audit');

/** Number of fields of an entry that `list-old-audit` lists. */
const LISTED = 5;

const keysOf = (namespace: string) => {
  const { auditRecords, auditHeads, auditRemoved } = fleetKeys(namespace);
  return [auditRecords, auditHeads, auditRemoved];
};

/** Some records of a chain in a row, sealed. */
export interface SealedAuditRecords {
  /** Id of their entry in the stream. */
  id: string;
  /** Name of the chain as it stands in Redis. */
  chain: string;
  /** Number of the first record. */
  first: number;
  /** Records, sealed with a seal key of the fleet. */
  sealed: string;
}

/**
 * Adds records to a chain whose head in Redis is the text `expected`, or empty. Returns the text of the head in Redis
 * if it is another one.
 */
export async function appendAuditRecords(
  redis: Redis,
  namespace: string,
  { chain, first, sealed }: { chain: AuditChainName; first: number; sealed: string },
  { expected, head }: { expected: string; head: string },
): Promise<{ type: 'added'; bytes: number } | { type: 'other-head'; head: string }> {
  const args = [toAuditChain(chain), expected, head, first, sealed];
  const [added, found] = asArray(await runScript(redis, append, keysOf(namespace), args), append.name);
  return added === 1 ? { type: 'added', bytes: asNumber(found) } : { type: 'other-head', head: asString(found) };
}

/** Records, and the mark of those of their chain that were removed before, or empty. */
export interface OldAuditRecords extends SealedAuditRecords {
  mark: string;
}

/** Lists the oldest records, with the bytes of all records and the mark of the stream. */
export async function listOldAuditRecords(
  redis: Redis,
  namespace: string,
  most: number,
): Promise<{ bytes: number; streamMark: string; oldest: OldAuditRecords[] }> {
  const reply = asArray(await runScript(redis, listOld, keysOf(namespace), [most]), listOld.name);
  const [bytes, streamMark, ...fields] = reply.map(asString);
  const oldest: OldAuditRecords[] = [];
  for (let at = 0; at < fields.length; at += LISTED) {
    const [id = '', chain = '', first, sealed = '', mark = ''] = fields.slice(at, at + LISTED);
    oldest.push({ id, chain, first: asNumber(first), sealed, mark });
  }
  // Whoever lists has to count what somebody has overwritten with no number.
  const size = Number(bytes);
  return { bytes: Number.isNaN(size) ? Number.POSITIVE_INFINITY : size, streamMark: streamMark ?? '', oldest };
}

/**
 * Removes the oldest records, those in `records`, takes `bytes` off the size of the stream, and stores marks of the
 * stream and of their chains. Returns false if another host has removed some of them.
 */
export async function removeOldAuditRecords(
  redis: Redis,
  namespace: string,
  records: readonly OldAuditRecords[],
  { bytes, streamMark, chainMarks }: { bytes: number; streamMark: string; chainMarks: ReadonlyMap<string, string> },
): Promise<boolean> {
  const [from, through] = [records[0], records.at(-1)];
  if (from === undefined || through === undefined) return true;
  const args = [from.id, through.id, bytes, streamMark, ...[...chainMarks].flat()];
  return (await runScript(redis, removeOld, keysOf(namespace), args)) === 1;
}

/** Stores the size of the stream, after somebody has counted it. */
export async function storeAuditBytes(redis: Redis, namespace: string, bytes: number): Promise<void> {
  await redis.hset(fleetKeys(namespace).auditRemoved, 'bytes', bytes);
}

/** Forgets chains, and stores the mark of the stream. */
export async function forgetAuditChains(
  redis: Redis,
  namespace: string,
  chains: readonly AuditChainName[],
  streamMark: string,
): Promise<void> {
  if (chains.length === 0) return;
  const { auditHeads, auditRemoved } = fleetKeys(namespace);
  const names = chains.map(toAuditChain);
  await redis.hset(auditRemoved, 'stream', streamMark);
  await redis.hdel(auditHeads, ...names);
  await redis.hdel(auditRemoved, ...names);
}

/** Reads up to `most` entries of the stream, from an id, or behind it with `(` before the id. */
export async function readAuditRecords(
  redis: Redis,
  namespace: string,
  from: string,
  most: number,
): Promise<SealedAuditRecords[]> {
  const entries = await redis.xrange(fleetKeys(namespace).auditRecords, from, '+', 'COUNT', most);
  return entries.map(toSealedRecords);
}

/** Reads up to `most` entries of the stream, the newest first, from an id, or before it with `(` before the id. */
export async function readNewestAuditRecords(
  redis: Redis,
  namespace: string,
  from: string,
  most: number,
): Promise<SealedAuditRecords[]> {
  const entries = await redis.xrevrange(fleetKeys(namespace).auditRecords, from, '-', 'COUNT', most);
  return entries.map(toSealedRecords);
}

function toSealedRecords([id, fields]: [id: string, fields: string[]]): SealedAuditRecords {
  const named = new Map(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ''] as const] : [])));
  return { id, chain: named.get('c') ?? '', first: asNumber(named.get('f')), sealed: named.get('d') ?? '' };
}

/** A chain of the audit in Redis, as far as it is known without its records. */
export interface AuditChainState {
  /** Name of the chain. */
  chain: AuditChainName;
  /** Last record of the chain. */
  head: AuditHead;
  /** Time of the head's record, ms. */
  at: number;
  /** Mark of the records that hosts have removed, or empty. */
  mark: string;
  /** True if the process that writes the chain may still run. */
  isOpen: boolean;
}

/** Reads the heads of the chains in Redis, with what was removed of them and of the whole stream. */
export async function readAuditChains(
  redis: Redis,
  namespace: string,
): Promise<{ chains: AuditChainState[]; streamMark: string }> {
  const { auditHeads, auditRemoved } = fleetKeys(namespace);
  const [heads, removed] = await Promise.all([redis.hgetall(auditHeads), redis.hgetall(auditRemoved)]);
  const known = Object.entries(heads).flatMap(([name, text]) => {
    const [chain, stored] = [parseAuditChain(name), storedAuditHeadSchema.safeParse(tryJson(text)).data];
    if (chain === undefined || stored === undefined) return [];
    const { at, ...head } = stored;
    return [{ chain, head, at, mark: removed[name] ?? '' }];
  });
  const open = await readOpenProcesses(
    redis,
    namespace,
    known.map(({ chain }) => chain),
  );
  return {
    chains: known.map((state) => ({ ...state, isOpen: open.has(state.chain) })),
    streamMark: removed.stream ?? '',
  };
}

/** Returns those of the chains whose process may still act as its host. */
async function readOpenProcesses(
  redis: Redis,
  namespace: string,
  chains: readonly AuditChainName[],
): Promise<Set<AuditChainName>> {
  const hosts = [...new Set(chains.map(({ host }) => host))];
  if (hosts.length === 0) return new Set();
  const boots = await redis.mget(hosts.map((host) => hostKeys(namespace, host).boot));
  const bootOf = new Map(hosts.map((host, index) => [host, boots[index]]));
  return new Set(chains.filter(({ host, boot }) => bootOf.get(host) === boot));
}
