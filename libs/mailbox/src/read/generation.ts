import { type SessionKeys, specKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

export type Phase = 'open' | 'closing' | 'closed';

/** Reads the newest generation of a session id. Throws QUEUE_UNAVAILABLE. */
export async function readGeneration(
  redis: Redis,
  keys: SessionKeys,
): Promise<{ phase: Phase; generation: string; host: string } | undefined> {
  const fields = await redis.hmget(keys.state, 'phase', 'generation', 'host').catch(throwQueueError);
  const [phase, generation, host] = fields;
  return phase ? { phase: phase as Phase, generation: generation ?? '', host: host ?? '' } : undefined;
}

/** Reads the newest generation with its sealed spec. Throws QUEUE_UNAVAILABLE. */
export async function readSealedSpec(
  redis: Redis,
  keys: SessionKeys,
): Promise<{ phase: Phase; generation: string; spec: string } | undefined> {
  // A transaction, so that the spec is that of the generation.
  const reads = redis.multi().hmget(keys.state, 'phase', 'generation').get(specKey(keys));
  const [[, fields], [, spec]] = (await reads.exec().catch(throwQueueError)) as [[null, string[]], [null, string]];
  const [phase, generation] = fields;
  return phase && generation && spec ? { phase: phase as Phase, generation, spec } : undefined;
}
