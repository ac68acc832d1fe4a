import { setTimeout as delay } from 'node:timers/promises';
import { readStoredSession } from '@shellfleet/mailbox';
import { sessionJobLockKey } from '@shellfleet/placement';
import { type FleetKeys, fleetKeys, sessionJobId, sessionKeys, sessionsQueue, tenantKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { keyspaceOf } from '../../support/keyspace.ts';

const TENANT = 'default';
const REPLY_WITHIN_MS = 5_000;

/** Returns the state of each session in Redis, for the report of a round that does not end. Never rejects. */
export function describeSessions(
  redis: Redis,
  namespace: string,
  sessions: readonly { id: string }[],
): Promise<[session: string, state: string][]> {
  return Promise.all(
    sessions.map(async ({ id }): Promise<[string, string]> => {
      const described = describeSession(redis, namespace, id).catch(String);
      const noAnswer = delay(REPLY_WITHIN_MS, 'Redis does not answer', { ref: false });
      return [id, await Promise.race([described, noAnswer])];
    }),
  );
}

async function describeSession(redis: Redis, namespace: string, id: string): Promise<string> {
  const keys = sessionKeys(keyspaceOf(namespace), TENANT, id);
  const fleet = fleetKeys(keyspaceOf(namespace));
  const state = await readStoredSession(redis, keys);
  if (state === undefined) return 'not in Redis';
  const { phase, status, host, fence, running, waiting, held, placementClass } = state;
  const facts = {
    ...{ phase, status, host, fence, running, waiting, held },
    owner: await redis.hget(fleet.owners, keys.member),
    job: await findJob(redis, fleet, placementClass, sessionJobId(TENANT, id)),
    lock: await redis.get(sessionJobLockKey(fleet, placementClass, { tenant: TENANT, session: id })),
    index: await redis.zscore(tenantKeys(keyspaceOf(namespace), TENANT).index, id),
  };
  return Object.entries(facts)
    .map(([name, value]) => `${name} ${value === null || value === '' ? 'none' : value}`)
    .join(', ');
}

async function findJob(redis: Redis, fleet: FleetKeys, placementClass: string, job: string): Promise<string> {
  const queue = `${fleet.sessionQueues}:${sessionsQueue(placementClass, TENANT)}`;
  const places = await Promise.all([
    redis.lpos(`${queue}:active`, job).then((at) => (at === null ? [] : ['active'])),
    redis.lpos(`${queue}:wait`, job).then((at) => (at === null ? [] : ['waiting'])),
    redis.zscore(`${queue}:prioritized`, job).then((at) => (at === null ? [] : ['prioritized'])),
    redis.exists(`${queue}:${job}`).then((count) => (count === 0 ? ['without data'] : [])),
  ]);
  return places.flat().join(' ');
}
