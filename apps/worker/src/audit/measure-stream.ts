import { readNewestAuditRecords } from '@shellfleet/mailbox';
import { parseAuditChain } from '@shellfleet/protocol';
import { openAuditRecords, type Sealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';

/** Number of entries that are read together. */
const AT_ONCE = 32;
/** Share of the size that is left, so that not each record of a full stream has it measured. */
const KEPT_SHARE = 15 / 16;

interface MeasureStreamDeps {
  redis: Redis;
  namespace: string;
  sealer: Pick<Sealer, 'open'>;
}

export interface StreamSize {
  /** Bytes of the records that count, without the surplus. */
  bytes: number;
  /** Id of the newest entry that is too much. */
  surplus?: string;
}

/**
 * Measures the stream, the newest entries first. Entries that do not open, or that were added again, do not count: with
 * them anybody who writes to Redis could make the others too many.
 */
export async function measureStream(
  { redis, namespace, sealer }: MeasureStreamDeps,
  maxBytes: number,
): Promise<StreamSize> {
  const oldestOf = new Map<string, number>();
  let bytes = 0;
  let kept: StreamSize | undefined;
  let from = '+';
  for (;;) {
    const entries = await readNewestAuditRecords(redis, namespace, from, AT_ONCE);
    for (const { id, chain, first, sealed } of entries) {
      const name = parseAuditChain(chain);
      if (first >= (oldestOf.get(chain) ?? Number.POSITIVE_INFINITY)) continue;
      if (name === undefined || openAuditRecords(sealer, namespace, { chain: name, first, sealed }) === undefined)
        continue;
      oldestOf.set(chain, first);
      const before = bytes;
      bytes += sealed.length;
      if (bytes > maxBytes * KEPT_SHARE) kept ??= { bytes: before, surplus: id };
      if (kept !== undefined && bytes > maxBytes) return kept;
    }
    const last = entries.at(-1);
    if (last === undefined || entries.length < AT_ONCE) return { bytes };
    from = `(${last.id}`;
  }
}

/** Returns true if the first entry of a stream is behind the other one. */
export function isBehind(id: string, other: string): boolean {
  const [[time = 0, number = 0], [otherTime = 0, otherNumber = 0]] = [partsOf(id), partsOf(other)];
  return time === otherTime ? number > otherNumber : time > otherTime;
}

const partsOf = (id: string) => id.split('-').map(Number);
