import { repeat } from '@shellfleet/concurrency';
import { type FleetKeys, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

/** How often the request is read without a call. */
const POLL_MS = 2_000;

interface DrainRequestDeps {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  logger: Logger;
  /** The request was made, or withdrawn. */
  onChange(): void;
}

/** An operator's request that this host takes nothing new. It is in Redis, so it holds for later processes of this host too. */
export interface DrainRequest {
  readonly isMade: boolean;
  /** Reads it now. Never rejects. */
  look(): Promise<void>;
  close(): Promise<void>;
}

/** Reads the request, and again every few seconds until closed. */
export async function watchDrainRequest(deps: DrainRequestDeps): Promise<DrainRequest> {
  const { redis, fleet, hostId, logger } = deps;
  const key = hostKeys(fleet.namespace, hostId).drain;
  let isMade = (await redis.exists(key)) === 1;
  const look = async () => {
    const found = await redis.exists(key).catch(() => undefined);
    if (found === undefined || (found === 1) === isMade) return;
    isMade = found === 1;
    logger.info({ 'host.id': hostId }, isMade ? 'worker.draining' : 'worker.drain-undone');
    deps.onChange();
  };
  const rounds = repeat(look, { everyMs: POLL_MS });
  return {
    get isMade() {
      return isMade;
    },
    look,
    close: rounds.close,
  };
}
