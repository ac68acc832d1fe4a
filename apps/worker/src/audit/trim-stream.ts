import {
  forgetAuditChains,
  listOldAuditRecords,
  type OldAuditRecords,
  readAuditChains,
  removeOldAuditRecords,
  storeAuditBytes,
} from '@shellfleet/mailbox';
import { type AuditChainName, parseAuditChain } from '@shellfleet/protocol';
import {
  openAuditRecords,
  parseAuditLine,
  type RemovalMarks,
  type RemovedRecords,
  type Sealer,
} from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import { isBehind, measureStream } from './measure-stream.ts';

// TRIM-1. Records are removed if they are older than the retention, or the oldest ones while the stream is too large.
//     The latter are counted in the mark of their chain, and reported.
// TRIM-2. Age, number and order come from the authenticated records, not from their ids. So nobody without a seal key
//     can have records removed as old ones, or have a mark made about records that a host has not seen.
// TRIM-3. The size that Redis has of the stream only tells when to count. What is removed for the size follows from
//     the authenticated records, each once. So nobody without a seal key can have them removed before their time.

/** Number of entries that are looked at together. */
const AT_ONCE = 32;
/** Time in which the last records of a chain are removed once they are old enough. */
const FORGET_AFTER_MS = 3_600_000;

export interface TrimStreamDeps {
  redis: Redis;
  namespace: string;
  marks: RemovalMarks;
  sealer: Pick<Sealer, 'open'>;
  retentionMs: number;
  /** Most bytes of the stream. */
  maxBytes: number;
  logger: Logger;
}

/** Removes records that are too old or too many from the stream in Redis. */
export async function trimStream(deps: TrimStreamDeps): Promise<void> {
  const { redis, namespace, retentionMs, maxBytes } = deps;
  const before = Date.now() - retentionMs;
  const told = await removeOldest(deps, before);
  if (told <= maxBytes) return;
  const { bytes, surplus } = await measureStream(deps, maxBytes);
  if (surplus !== undefined) await removeOldest(deps, before, surplus);
  await storeAuditBytes(redis, namespace, bytes);
}

/**
 * Removes the oldest records while they are too old, or not behind the entry `surplus`. Returns the size that Redis has
 * of the stream.
 */
async function removeOldest(deps: TrimStreamDeps, before: number, surplus?: string): Promise<number> {
  // Mostly the oldest entry stays, and no other one is looked at.
  for (let most = 1; ; most = AT_ONCE) {
    const { bytes, oldest, streamMark } = await listOldAuditRecords(deps.redis, deps.namespace, most);
    const chosen = choose(deps, oldest, before, surplus);
    if (chosen.length === 0 || !(await remove(deps, chosen, streamMark, before))) return bytes;
    if (chosen.length < oldest.length) return bytes;
  }
}

interface Chosen {
  entry: OldAuditRecords;
  chain: AuditChainName | undefined;
  /** Number of its records, or 0 if they do not open. */
  count: number;
  isEarly: boolean;
}

function choose(
  { namespace, sealer }: TrimStreamDeps,
  oldest: readonly OldAuditRecords[],
  before: number,
  surplus: string | undefined,
): Chosen[] {
  const chosen: Chosen[] = [];
  for (const entry of oldest) {
    const chain = parseAuditChain(entry.chain);
    const lines = chain && openAuditRecords(sealer, namespace, { ...entry, chain });
    const at = parseAuditLine(lines?.at(-1) ?? '', [])?.record.at;
    const isEarly = (at === undefined ? Number.parseInt(entry.id, 10) : Date.parse(at)) >= before;
    if (isEarly && (surplus === undefined || isBehind(entry.id, surplus))) return chosen;
    chosen.push({ entry, chain, count: lines?.length ?? 0, isEarly });
  }
  return chosen;
}

async function remove(
  { redis, namespace, marks, logger }: TrimStreamDeps,
  chosen: readonly Chosen[],
  streamMark: string,
  before: number,
): Promise<boolean> {
  const removed = new Map<string, { chain: AuditChainName } & RemovedRecords>();
  let early = 0;
  for (const { entry, chain, count, isEarly } of chosen) {
    if (chain === undefined) continue;
    const known = removed.get(entry.chain) ?? marks.readChain(chain, entry.mark);
    // Records behind a gap get no mark, so that the gap stays visible.
    const last = entry.first <= known.through + 1 ? Math.max(known.through, entry.first + count - 1) : known.through;
    const earlyHere = isEarly ? last - known.through : 0;
    early += earlyHere;
    removed.set(entry.chain, { chain, through: last, early: known.early + earlyHere });
  }
  const isAged = chosen.some(({ isEarly }) => !isEarly);
  const isRemoved = await removeOldAuditRecords(
    redis,
    namespace,
    chosen.map(({ entry }) => entry),
    {
      bytes: chosen.reduce((sum, { entry, count }) => sum + (count > 0 ? entry.sealed.length : 0), 0),
      streamMark: isAged ? marks.ofStream(Math.max(before, marks.readStream(streamMark))) : streamMark,
      chainMarks: new Map([...removed].map(([name, { chain, ...of }]) => [name, marks.ofChain(chain, of)])),
    },
  );
  if (isRemoved && early > 0) logger.error({ dropped: early }, 'audit.removed-early');
  return isRemoved;
}

/** Forgets chains that ended long enough ago that nothing is left of them. */
export async function forgetOldChains({ redis, namespace, marks, retentionMs }: TrimStreamDeps): Promise<void> {
  const before = Date.now() - retentionMs - FORGET_AFTER_MS;
  const { chains, streamMark } = await readAuditChains(redis, namespace);
  const over = chains.filter(({ at, isOpen }) => at < before && !isOpen).map(({ chain }) => chain);
  await forgetAuditChains(redis, namespace, over, marks.ofStream(Math.max(before, marks.readStream(streamMark))));
}
