import type { SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

export type Life = 'open' | 'closing' | 'closed';

/** The newest life of a session id. Throws QUEUE_UNAVAILABLE. */
export async function readLife(
  redis: Redis,
  keys: SessionKeys,
): Promise<{ life: Life; generation: string; host: string } | undefined> {
  const fields = await redis.hmget(keys.state, 'life', 'generation', 'host').catch(throwQueueError);
  const [life, generation, host] = fields;
  return life ? { life: life as Life, generation: generation ?? '', host: host ?? '' } : undefined;
}

/** The newest life with its spec, sealed. Throws QUEUE_UNAVAILABLE. */
export async function readSealedSpec(
  redis: Redis,
  keys: SessionKeys,
): Promise<{ life: Life; generation: string; spec: string } | undefined> {
  const fields = await redis.hmget(keys.state, 'life', 'generation', 'spec').catch(throwQueueError);
  const [life, generation, spec] = fields;
  return life && generation && spec ? { life: life as Life, generation, spec } : undefined;
}
