import {
  type ApprovalEnd,
  type ApprovalKeys,
  approvalEndKey,
  approvalEndSchema,
  approvalGrantKey,
  approvalWrittenKey,
  askersKey,
  tryJson,
} from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, hashOfQuestion, parseAsker, toAsker } from './ask.ts';
import { stillAsks } from './still-asks.ts';

/** A question that waits for an answer. At least one of its askers still waits for that answer. */
export interface PendingQuestion {
  id: string;
  sealed: string;
  /** Sealed paths of files that changed since the question was asked. */
  written: string[];
  count: number;
  first: Asker;
  /** Times at which the first asker asked and expires (ms, by the clock of Redis). */
  askedAt: number;
  expiresAt: number;
}

/** Reads every pending question. Throws QUEUE_UNAVAILABLE. */
export async function readQuestions(redis: Redis, keys: ApprovalKeys): Promise<PendingQuestion[]> {
  const stored = await redis.hvals(keys.questions).catch(throwQueueError);
  return (await Promise.all(stored.map((one) => readPending(redis, keys, one))).catch(throwQueueError)).flat();
}

/** Reads the pending question with this id. Throws QUEUE_UNAVAILABLE. */
export async function readQuestion(redis: Redis, keys: ApprovalKeys, id: string): Promise<PendingQuestion | undefined> {
  const stored = await redis.hget(keys.questions, hashOfQuestion(id)).catch(throwQueueError);
  if (!stored?.startsWith(`${id} `)) return undefined;
  return (await readPending(redis, keys, stored).catch(throwQueueError))[0];
}

/** Reads a question that is stored as `<id> <sealed question>`. Returns an empty list when nobody asks it. */
async function readPending(redis: Redis, keys: ApprovalKeys, stored: string): Promise<PendingQuestion[]> {
  const [, id = '', sealed = ''] = /^(\S+) (.*)$/s.exec(stored) ?? [];
  const [count, oldest, written] = await Promise.all([
    redis.zcard(askersKey(keys, id)),
    readOldest(redis, keys, id),
    redis.lrange(approvalWrittenKey(keys, id), 0, -1),
  ]);
  // No asker is left: the question has ended since it was read, or upkeep has not withdrawn it yet.
  if (oldest === undefined) return [];
  const { first, askedAt, gone } = oldest;
  const expiresAt = Number((await redis.zscore(keys.pending, toAsker(first))) ?? 0);
  return [{ id, sealed, written, count: Math.max(1, count - gone), first, askedAt, expiresAt }];
}

/** Number of askers that are checked together. Usually the first asker still asks. */
const PAGE = 20;

/** Finds the first asker that still asks. `gone`: number of ended askers before it. */
async function readOldest(
  redis: Redis,
  keys: ApprovalKeys,
  id: string,
): Promise<{ first: Asker; askedAt: number; gone: number } | undefined> {
  for (let from = 0, most = 1; ; from += most, most = PAGE) {
    const pairs = await redis.zrange(askersKey(keys, id), String(from), String(from + most - 1), 'WITHSCORES');
    if (pairs.length === 0) return undefined;
    const askers = pairs.flatMap((member, index) =>
      index % 2 === 0 ? [{ first: parseAsker(member), askedAt: Number(pairs[index + 1]) }] : [],
    );
    const asks = await Promise.all(askers.map(({ first }) => first !== undefined && stillAsks(redis, keys, first)));
    const index = asks.indexOf(true);
    const { first, askedAt = 0 } = askers[index] ?? {};
    if (first !== undefined) return { first, askedAt, gone: from + index };
  }
}

/** Reads every asker of a question. Throws QUEUE_UNAVAILABLE. */
export async function readAskersOf(redis: Redis, keys: ApprovalKeys, id: string): Promise<Asker[]> {
  const members = await redis.zrange(askersKey(keys, id), '0', '-1').catch(throwQueueError);
  return members.flatMap((member) => parseAsker(member) ?? []);
}

/** Reads the sealed grants. Throws QUEUE_UNAVAILABLE. */
export async function readGrants(redis: Redis, keys: ApprovalKeys): Promise<{ id: string; sealed: string }[]> {
  const ids = await redis.zrange(keys.grants, '0', '-1').catch(throwQueueError);
  if (ids.length === 0) return [];
  const grants = await redis.mget(ids.map((id) => approvalGrantKey(keys, id))).catch(throwQueueError);
  return ids.flatMap((id, index) => (grants[index] ? [{ id, sealed: grants[index] as string }] : []));
}

/** Reads how a question ended, for as long as Redis keeps this record. Throws QUEUE_UNAVAILABLE. */
export async function readApprovalEnd(redis: Redis, keys: ApprovalKeys, id: string): Promise<ApprovalEnd | undefined> {
  const text = await redis.get(approvalEndKey(keys, id)).catch(throwQueueError);
  return text === null ? undefined : approvalEndSchema.safeParse(tryJson(text)).data;
}

/** Returns true while a grant with this id exists. Throws QUEUE_UNAVAILABLE. */
export async function isGranted(redis: Redis, keys: ApprovalKeys, id: string): Promise<boolean> {
  return (await redis.exists(approvalGrantKey(keys, id)).catch(throwQueueError)) === 1;
}
