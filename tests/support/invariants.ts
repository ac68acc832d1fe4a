import { decodeStoredChunk, type SessionKeys, type StoredChunk, type StreamName } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/**
 * The invariants as functions of a session's stream. Each returns its violations, so a test compares with [].
 * Numbers are those of the invariants in ARCHITECTURE.md.
 */
export interface StreamEvent {
  id: string;
  type: string;
  entryId: string;
  data: Buffer;
}

export async function readEvents(redis: Redis, keys: SessionKeys): Promise<StreamEvent[]> {
  const entries = await redis.xrangeBuffer(keys.stream, '-', '+');
  return entries.map(([id, fields]) => ({
    id: id.toString(),
    type: fields[1]?.toString() ?? '',
    entryId: fields[3]?.toString() ?? '',
    data: fields[5] ?? Buffer.alloc(0),
  }));
}

export const idsOf = (events: StreamEvent[], type: string): string[] =>
  events.filter((event) => event.type === type).map((event) => event.entryId);

/** Returns the outcome of each entry, from its terminal event. */
export function outcomesOf(events: StreamEvent[]): Map<string, string> {
  const completed = events.filter((event) => event.type === 'command.completed');
  return new Map(completed.map((event) => [event.entryId, JSON.parse(event.data.toString()).outcome]));
}

/** Invariant 4: every accepted entry has exactly one terminal event. `accepted`: the ids that submitters received. */
export function notCompletedOnce(events: StreamEvent[], accepted: Iterable<string>): string[] {
  const counts = countBy(idsOf(events, 'command.completed'));
  const all = new Set([...accepted, ...idsOf(events, 'command.accepted')]);
  return [...all].filter((id) => counts.get(id) !== 1).map((id) => `${id} completed ${counts.get(id) ?? 0} times`);
}

/** Every entry was accepted once. */
export function notAcceptedOnce(events: StreamEvent[]): string[] {
  return [...countBy(idsOf(events, 'command.accepted'))]
    .filter(([, count]) => count !== 1)
    .map(([id, count]) => `${id} accepted ${count} times`);
}

/** Invariant 3: an entry starts at most once, unless it is idempotent. */
export function startedTwice(events: StreamEvent[], idempotent: ReadonlySet<string> = new Set()): string[] {
  return [...countBy(idsOf(events, 'command.started'))]
    .filter(([id, count]) => count > 1 && !idempotent.has(id))
    .map(([id, count]) => `${id} started ${count} times`);
}

/** Invariant 2: entries start in the order in which they were accepted. */
export function startedOutOfOrder(events: StreamEvent[]): string[] {
  const accepted = new Map(idsOf(events, 'command.accepted').map((id, index) => [id, index]));
  const started = [...new Set(idsOf(events, 'command.started'))];
  return started
    .filter((id, index) => index > 0 && (accepted.get(id) ?? -1) < (accepted.get(started[index - 1] ?? '') ?? -1))
    .map((id) => `${id} started after one that was accepted later`);
}

/**
 * Invariant 2: an entry starts only when the one before it has ended. Output after its end is late output of background
 * processes.
 */
export function overlapping(events: StreamEvent[]): string[] {
  const problems: string[] = [];
  const ended = new Set<string>();
  let running: string | undefined;
  for (const { type, entryId } of events) {
    if (type === 'command.started' && running !== undefined && running !== entryId)
      problems.push(`${entryId} started while ${running} ran`);
    if (type === 'command.started') running = entryId;
    if (type === 'command.completed') ended.add(entryId);
    if (type === 'command.output' && running !== entryId && !ended.has(entryId))
      problems.push(`${entryId} has output while it does not run`);
    if (type === 'command.completed' && running === entryId) running = undefined;
  }
  return problems;
}

/**
 * Invariant 7: no output is missing, doubled or out of place. When an entry is run again, its raw offsets and seq start
 * again.
 */
export function outputGaps(events: StreamEvent[]): string[] {
  const problems: string[] = [];
  const next = new Map<string, { seq: number; stdout: number; stderr: number }>();
  for (const { type, entryId, data } of events) {
    const known = next.get(entryId) ?? { seq: 0, stdout: 0, stderr: 0 };
    next.set(entryId, known);
    if (type === 'command.started') Object.assign(known, { seq: 0, stdout: 0, stderr: 0 });
    if (type !== 'command.output') continue;
    const entry = decodeStoredChunk(data);
    if (entry === undefined) {
      problems.push(`${entryId} has output that does not decode`);
      continue;
    }
    if (entry.seq !== known.seq) problems.push(`${entryId}: seq ${entry.seq} where ${known.seq} follows`);
    if (entry.rawFrom !== known[entry.stream])
      problems.push(`${entryId}: ${entry.stream} at ${entry.rawFrom} where ${known[entry.stream]} follows`);
    known.seq = entry.seq + 1;
    known[entry.stream] = entry.rawTo;
  }
  return problems;
}

/** Returns the bytes of each stream of an entry's last run. */
export function outputOf(events: StreamEvent[], entryId: string): Record<StreamName, Buffer> {
  const own = events.filter((event) => event.entryId === entryId);
  const lastStart = own.findLastIndex((event) => event.type === 'command.started');
  const entries = own
    .slice(lastStart + 1)
    .filter((event) => event.type === 'command.output')
    .map((event) => decodeStoredChunk(event.data))
    .filter((entry): entry is StoredChunk => entry !== undefined);
  const of = (stream: StreamName) =>
    Buffer.concat(entries.filter((entry) => entry.stream === stream).map((entry) => entry.data));
  return { stdout: of('stdout'), stderr: of('stderr') };
}

/** Entries that wait or run, and payloads that are still stored, as sentences. */
export async function leftovers(redis: Redis, keys: SessionKeys): Promise<string[]> {
  const [waiting, run, payloads] = await Promise.all([
    redis.lrange(keys.queue, 0, -1),
    redis.hget(keys.state, 'running'),
    keysOf(redis, `${keys.prefix}payload:`),
  ]);
  return [
    ...waiting.map((id) => `${id} waits`),
    ...(run === null ? [] : [`${run} runs`]),
    ...payloads.map((key) => `${key} is kept`),
  ];
}

/** Returns the keys that have no expiry. */
export async function keysWithoutExpiry(redis: Redis, prefix: string): Promise<string[]> {
  const keys = await keysOf(redis, prefix);
  const ttls = await Promise.all(keys.map((key) => redis.pttl(key)));
  return keys.filter((_, index) => (ttls[index] ?? -1) < 0);
}

/** Returns the keys of one namespace only, because other tests use the same Redis. */
async function keysOf(redis: Redis, prefix: string): Promise<string[]> {
  const found: string[] = [];
  const pattern = `${prefix.replaceAll(/[*?[\]\\]/g, '\\$&')}*`;
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000);
    found.push(...keys);
    cursor = next;
  } while (cursor !== '0');
  return [...new Set(found)].sort();
}

function countBy(ids: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}
