import { type ApprovalKeys, recordKey, sessionKeys, TOOL_ASKER, wantedKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, toAsker } from './ask.ts';

/**
 * Tells whether an asker may still run on an answer: the entry waits in the same life of its session, or the caller of
 * a file operation or of a tool call waits for the answer. The keys of a mailbox and those of its tenant's questions
 * may be on different nodes of a Redis Cluster, so no script ends an entry and withdraws its question in one step:
 * whoever shows a question or applies an answer looks first. Throws QUEUE_UNAVAILABLE.
 */
export async function stillAsks(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<boolean> {
  const ofSession = sessionKeys(keys.namespace, keys.tenant, asker.session);
  const [wanted, [life, generation], entryState] = await Promise.all([
    redis.exists(wantedKey(keys, toAsker(asker))),
    redis.hmget(ofSession.state, 'life', 'generation'),
    redis.hget(recordKey(ofSession, asker.entryId), 'state'),
  ]).catch(throwQueueError);
  if (asker.session === TOOL_ASKER) return wanted === 1;
  return life === 'open' && generation === asker.generation && (entryState === 'waiting' || wanted === 1);
}
