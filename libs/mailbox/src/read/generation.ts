import type { SessionKeys } from '@shellfleet/protocol';
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
  const fields = await redis.hmget(keys.state, 'phase', 'generation', 'spec').catch(throwQueueError);
  const [phase, generation, spec] = fields;
  return phase && generation && spec ? { phase: phase as Phase, generation, spec } : undefined;
}
