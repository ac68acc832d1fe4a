import { repeat } from '@shellfleet/concurrency';
import { type FleetKeys, hostKeys, LIMITS, toolOfferSchema } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import type { Tool } from './load-tools.ts';

const OFFER_MS = 5_000;
const RENEW_EVERY_MS = 1_500;

/** Publishes the tools of this host until closed. Resolves after the first publication. */
export async function offerTools(
  redis: Redis,
  fleet: FleetKeys,
  hostId: string,
  tools: readonly Tool[],
  logger: Logger,
): Promise<{ close(): Promise<void> }> {
  const key = hostKeys(fleet.namespace, hostId).tools;
  const text = JSON.stringify(tools.map((tool) => toolOfferSchema.parse(tool)));

  const know = async () => {
    const now = Date.now();
    await redis.zadd(fleet.knownTools, ...tools.flatMap(({ name }) => [now, name]));
    await redis.zremrangebyscore(fleet.knownTools, '-inf', now - LIMITS.toolKnownMs);
  };
  // The definitions are written again only if they are missing.
  const renew = async () => {
    if ((await redis.pexpire(key, OFFER_MS)) === 0) await redis.set(key, text, 'PX', OFFER_MS);
    await know();
  };

  await renew();
  const rounds = repeat(renew, {
    everyMs: RENEW_EVERY_MS,
    onError: (err) => logger.warn({ err }, 'tools.offer-failed'),
  });
  return {
    async close() {
      await rounds.close();
      await redis.del(key).catch(() => {});
    },
  };
}
