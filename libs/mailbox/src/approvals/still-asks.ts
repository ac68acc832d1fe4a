import { type ApprovalKeys, answeredKey, recordKey, sessionKeys, TOOL_ASKER, wantedKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, toAsker } from './ask.ts';

/**
 * Tells whether an asker may still run on an answer: the entry waits in the same generation of its session, or the caller of
 * a file operation or of a tool call waits for the answer. The keys of a mailbox and those of its tenant's questions
 * may be on different nodes of a Redis Cluster, so no script ends an entry and withdraws its question in one step:
 * whoever shows a question or applies an answer looks first. Throws QUEUE_UNAVAILABLE.
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

/** Tells whether an asker asks a question that is pending. Throws QUEUE_UNAVAILABLE. */
export async function isAsking(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<boolean> {
  return (await redis.hexists(keys.asked, toAsker(asker)).catch(throwQueueError)) === 1;
}

/** Tells whether this asks a question that is pending, or asked one that was decided. Throws QUEUE_UNAVAILABLE. */
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

/**
 * Reports that the caller waits for the answer: its question is not withdrawn for some seconds. Throws
 * QUEUE_UNAVAILABLE.
 */
export async function keepWanted(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<void> {
  await redis.set(wantedKey(keys, toAsker(asker)), '1', 'PX', WANTED_MS).catch(throwQueueError);
}
