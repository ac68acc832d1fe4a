import { type ApprovalEnd, type ApprovalKeys, approvalEndKey, approvalEndSchema, tryJson } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, parseAsker } from './ask.ts';

const PAGE = 200;

/** An entry that was decided, and whose session has not been told. */
export interface Decided {
  type: 'approve' | 'deny' | 'expire';
  question: string;
  asker: Asker;
  end: ApprovalEnd | undefined;
  /** For `forgetDecided`. */
  member: string;
}

/** Those that were decided before a time (ms, by the clock of Redis), oldest first, a page of them. Throws QUEUE_UNAVAILABLE. */
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
  const known = parsed.flatMap(({ type, question, asker, member }) =>
    asker === undefined || type === undefined ? [] : [{ type, question, asker, member, end: endOf.get(question) }],
  );
  const unknown = parsed.filter(({ asker, type }) => asker === undefined || type === undefined);
  if (unknown.length > 0)
    await forgetDecided(
      redis,
      keys,
      unknown.map(({ member }) => member),
    );
  return known;
}

/** Their sessions have been told. */
export async function forgetDecided(redis: Redis, keys: ApprovalKeys, members: readonly string[]): Promise<void> {
  await redis.zrem(keys.decided, ...members).catch(throwQueueError);
}

function parse(member: string) {
  const [type = '', question = '', ...asker] = member.split(' ');
  const types = ['approve', 'deny', 'expire'] as const;
  return { type: types.find((one) => one === type), question, asker: parseAsker(asker.join(' ')), member };
}
