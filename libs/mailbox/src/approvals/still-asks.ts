import { type ApprovalKeys, answeredKey, recordKey, sessionKeys, TOOL_ASKER, wantedKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, toAsker } from './ask.ts';

/**
 * Returns true if an asker still needs an answer: its entry waits, or the caller of its tool call does. An entry can
 * end without its question, because no script can end both. So call this before a question is shown or an answer is
 * applied. Throws QUEUE_UNAVAILABLE.
 */
export async function stillAsks(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<boolean> {
  const ofSession = sessionKeys(keys.namespace, keys.tenant, asker.session);
  const [wanted, [phase, generation], entryState] = await Promise.all([
    redis.exists(wantedKey(keys, toAsker(asker))),
    redis.hmget(ofSession.state, 'phase', 'generation'),
    redis.hget(recordKey(ofSession, asker.entryId), 'state'),
  ]).catch(throwQueueError);
  if (asker.session === TOOL_ASKER) return wanted === 1;
  return phase === 'open' && generation === asker.generation && (entryState === 'waiting' || wanted === 1);
}

/** Returns true if an asker has a pending question. Throws QUEUE_UNAVAILABLE. */
export async function isAsking(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<boolean> {
  return (await redis.hexists(keys.asked, toAsker(asker)).catch(throwQueueError)) === 1;
}

/** Returns whether the question of an asker is pending or decided, if it has one. Throws QUEUE_UNAVAILABLE. */
export async function readAsked(
  redis: Redis,
  keys: ApprovalKeys,
  asker: Asker,
): Promise<'asks' | 'decided' | undefined> {
  const name = toAsker(asker);
  const [asks, decided] = await Promise.all([
    redis.hexists(keys.asked, name),
    redis.exists(answeredKey(keys, name)),
  ]).catch(throwQueueError);
  return asks === 1 ? 'asks' : decided === 1 ? 'decided' : undefined;
}

const WANTED_MS = 15_000;

/** Records for WANTED_MS that the caller of an asker's tool call still waits. Throws QUEUE_UNAVAILABLE. */
export async function keepWanted(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<void> {
  await redis.set(wantedKey(keys, toAsker(asker)), '1', 'PX', WANTED_MS).catch(throwQueueError);
}
