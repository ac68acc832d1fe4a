import {
  createSessionJobs,
  newSessionJob,
  type Placement,
  QueuedSessions,
  type SessionJob,
  type SessionJobs,
} from '@shellfleet/placement';
import { type FleetKeys, fleetKeys } from '@shellfleet/protocol';
import { connectRedis } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { type OwnRedis, startOwnRedis } from './own-redis.ts';

// Queues of sessions on a Redis of their own, in a new fleet for each test.

const MARK = '1.key';
export const DOCKER = `docker~${MARK}`;
export const HOST = `host~${MARK}`;
export const OFFERS = [DOCKER, `docker+particular~${MARK}`, HOST];

export let own: OwnRedis;
export let redis: Redis;
export let fleet: FleetKeys;
export let queue: QueuedSessions;
let namespaces = 0;

/** Opens the queues before the tests of a file, and closes them afterwards. */
export function usePlacement(): void {
  beforeAll(async () => {
    own = await startOwnRedis();
    redis = (await connectRedis(own.url, 'host', 'test')).redis;
  });
  afterAll(async () => {
    redis?.disconnect();
    await own?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    fleet = fleetKeys(`placement-${++namespaces}`);
    queue = new QueuedSessions(redis, fleet, { enter: (call) => call() });
  });
}

export const startHost = (
  hostId: string,
  weights: Record<string, number> = {},
  serves = async (_job: SessionJob) => true,
  quotas: () => Record<string, number> = () => ({}),
  offers = OFFERS,
): Promise<SessionJobs> =>
  createSessionJobs({
    ...{
      redis,
      fleet,
      hostId,
      offers: (name) => offers.includes(name),
      lockMsOf: () => 60_000,
      stalledIntervalMs: 1_000,
    },
    ...{ serves, weights: () => weights, quotas },
  });

export const jobFor = (tenant: string, session: string, placement: Partial<Placement> = {}) =>
  newSessionJob({ tenant, session }, '1', {
    ...{ policy: 'docker', priority: 0, labels: {}, sealedWith: MARK },
    ...placement,
  });

export const add = (tenant: string, session: string, placement: Partial<Placement> = {}) =>
  queue.ensureJob(jobFor(tenant, session, placement));

export const addMany = (tenant: string, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => add(tenant, `${tenant}-${n}`)));

/** Fetches sessions as `<tenant>/<session>`. */
export async function fetchNames(host: SessionJobs, most = 1_000): Promise<string[]> {
  const names: string[] = [];
  while (names.length < most) {
    const [job] = await host.fetch();
    if (job === undefined) break;
    names.push(`${job.tenant}/${job.session}`);
  }
  return names;
}
