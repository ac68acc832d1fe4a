import { driverKey, type SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

/** A driver counts as gone after this time without a heartbeat. */
export const DRIVER_GONE_MS = 6_000;
export const RENEW_DRIVER_EVERY_MS = 2_000;

/** Renews the heartbeat of a session's driver, also in a full Redis unless it has expired. Throws QUEUE_UNAVAILABLE. */
export async function renewDriver(redis: Redis, keys: SessionKeys): Promise<void> {
  const key = driverKey(keys);
  try {
    if ((await redis.pexpire(key, DRIVER_GONE_MS)) === 0) await redis.set(key, '1', 'PX', DRIVER_GONE_MS);
  } catch (cause) {
    throwQueueError(cause);
  }
}
