import { readFleetFile } from '@shellfleet/client';
import { DEFAULTS } from '@shellfleet/protocol';
import { connectRedis, readFleetIdentity } from '@shellfleet/redis';

export interface OwnFleet {
  namespace: string;
  /** Identity of the fleet, if one is declared and Redis answers. */
  fleetId: string | undefined;
}

/** Finds the fleet that this environment names, without declaring one. */
export async function findOwnFleet(
  named: { redisUrl?: string; namespace?: string },
  env: NodeJS.ProcessEnv,
): Promise<OwnFleet> {
  const file = await readFleetFile(env).catch(() => undefined);
  const redisUrl = named.redisUrl || env.SHELLFLEET_REDIS_URL || file?.redisUrl;
  const fromFile = file?.redisUrl === redisUrl ? file?.namespace : undefined;
  const namespace = named.namespace || env.SHELLFLEET_NAMESPACE || fromFile || DEFAULTS.connection.namespace;
  return { namespace, fleetId: redisUrl === undefined ? undefined : await readFleetId(redisUrl, namespace) };
}

async function readFleetId(redisUrl: string, namespace: string): Promise<string | undefined> {
  try {
    const { redis } = await connectRedis(redisUrl, 'producer', 'shellfleet-own-fleet');
    const identity = await readFleetIdentity(redis, namespace).finally(() => redis.disconnect());
    return identity?.fleetId;
  } catch {
    return undefined;
  }
}
