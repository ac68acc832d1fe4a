import { type ApprovalEnd, type ApprovalKeys, approvalEndKey, approvalEndSchema, tryJson } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, parseAsker } from './ask.ts';

const PAGE = 200;

/** Asker of a decided question, whose session has not received the decision yet. */
export interface Decided {
  type: 'approve' | 'deny' | 'expire';
  question: string;
  /** Asker, unless its text is invalid. */
  asker: Asker | undefined;
  end: ApprovalEnd | undefined;
  /** Argument of `forgetDecided`. */
  member: string;
}

/** Reads a page of askers that were decided before a time (ms, by the clock of Redis). Throws QUEUE_UNAVAILABLE. */
export async function readDecided(
  redis: Redis,
  keys: ApprovalKeys,
  before = Number.POSITIVE_INFINITY,
): Promise<Decided[]> {
  const upTo = Number.isFinite(before) ? String(before) : '+inf';
  const members = await redis.zrange(keys.decided, '-inf', upTo, 'BYSCORE', 'LIMIT', 0, PAGE).catch(throwQueueError);
  const parsed = members.map(parse);
  const ids = [...new Set(parsed.map(({ question }) => question))];
  const ends =
    ids.length === 0 ? [] : await redis.mget(ids.map((id) => approvalEndKey(keys, id))).catch(throwQueueError);
  const endOf = new Map(ids.map((id, index) => [id, approvalEndSchema.safeParse(tryJson(ends[index] ?? '')).data]));
  return parsed.map((one) => ({ ...one, end: endOf.get(one.question) }));
}

/** Removes askers whose sessions have received the decision. */
export async function forgetDecided(redis: Redis, keys: ApprovalKeys, members: readonly string[]): Promise<void> {
  await redis.zrem(keys.decided, ...members).catch(throwQueueError);
}

function parse(member: string): Omit<Decided, 'end'> {
  const [given, question = '', ...asker] = member.split(' ');
  const type = (['approve', 'deny', 'expire'] as const).find((one) => one === given);
  return { type: type ?? 'expire', question, asker: type && parseAsker(asker.join(' ')), member };
}
