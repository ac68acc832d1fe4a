import { type ApprovalKeys, recordKey, sessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import type { Asker } from './ask.ts';

/**
 * Whether what asks may still run on an answer: nothing in Redis tells that it has ended, or that its session was closed. The keys of a mailbox and those of its tenant's questions may be on different nodes of a
 * Redis Cluster, so no script ends an entry and withdraws its question in one step: whoever shows a question or applies an answer looks first.
 * Throws QUEUE_UNAVAILABLE.
 */
export async function stillAsks(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<boolean> {
  const ofSession = sessionKeys(keys.namespace, keys.tenant, asker.session);
  const [[life, generation], state] = await Promise.all([
    redis.hmget(ofSession.state, 'life', 'generation'),
    redis.hget(recordKey(ofSession, asker.entryId), 'state'),
  ]).catch(throwQueueError);
  const isOver = (life && life !== 'open') || (generation && generation !== asker.generation) || state === 'ended';
  return !isOver;
}
