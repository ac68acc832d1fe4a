import { recordKey, type SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

type Offsets = { stdout: number; stderr: number };

export interface EntryRecord {
  state: 'waiting' | 'running' | 'ended';
  host: string;
  /** ms by the clock of Redis; undefined while the entry waits, and if it never ran */
  startedAt: number | undefined;
  event: string;
  /** stored raw bytes of each stream */
  stored: Offsets;
  /** Late output: the id of the last stream entry, and the offsets after it. */
  late: { id: string; stored: Offsets } | undefined;
}

/** Reads the record of an entry, until it expires. Throws QUEUE_UNAVAILABLE. */
export async function readRecord(redis: Redis, keys: SessionKeys, entryId: string): Promise<EntryRecord | undefined> {
  const fields = await redis
    .hmget(recordKey(keys, entryId), 'state', 'host', 'startedAt', 'event', 'stdout', 'stderr', 'late')
    .catch(throwQueueError);
  const [state, host, startedAt, event, stdout, stderr, late] = fields;
  if (!state) return undefined;
  return {
    state: state as EntryRecord['state'],
    host: host ?? '',
    startedAt: startedAt ? Number(startedAt) : undefined,
    event: event ?? '',
    stored: { stdout: Number(stdout ?? 0), stderr: Number(stderr ?? 0) },
    late: parseLate(late ?? ''),
  };
}

/** Parses the format of host/late.lua. */
function parseLate(text: string): EntryRecord['late'] {
  const [, id, stdout, stderr] = /^(\S+) (\d+) (\d+) \d+ \d+$/.exec(text) ?? [];
  return id === undefined ? undefined : { id, stored: { stdout: Number(stdout), stderr: Number(stderr) } };
}
