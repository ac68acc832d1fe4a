import { forget, note, notify, sweep } from '@shellfleet/mailbox';
import {
  ATTRIBUTES,
  type FleetKeys,
  hostKeys,
  LIMITS,
  namespaceSchema,
  type SessionKeys,
  sessionIdSchema,
  sessionKeys,
  tenantIdSchema,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { SessionJobs } from '../queue/session-jobs.ts';
import { nextStreamBytes, parseMemory } from './stream-budget.ts';

// What keeps the fleet's promises when a process dies between two steps. Every worker does it; a short lock spares Redis the repetition.
//
// U1. A session in which something waits, without owner and job, gets a job.
// U2. A session whose owner is silent is said to be unreachable, once per fence.
// U3. What is older than its retention, or over its budget, goes.

export interface UpkeepDeps {
  redis: Redis;
  fleet: FleetKeys;
  jobs: SessionJobs;
  logger: Logger;
  intervalMs: number;
}

const PAGE = 100;

export function startUpkeep(deps: UpkeepDeps): { close(): Promise<void> } {
  let round: Promise<void> | undefined;
  let streamBytes: number = LIMITS.sessionStreamBytes;
  const timer = setInterval(() => {
    round ??= runRound(deps, streamBytes)
      .then((next) => {
        streamBytes = next;
      })
      .catch((err: unknown) => deps.logger.warn({ err }, 'upkeep.failed'))
      .finally(() => {
        round = undefined;
      });
  }, deps.intervalMs);
  return {
    async close() {
      clearInterval(timer);
      await round;
    },
  };
}

/** Returns the budget of streams for the round after it. */
async function runRound(deps: UpkeepDeps, streamBytes: number): Promise<number> {
  const { redis, fleet, intervalMs } = deps;
  const ours = await redis.set(`${fleet.admission}:upkeep`, '1', 'PX', Math.floor(intervalMs * 0.9), 'NX');
  if (ours === null) return streamBytes;
  let cursor = '0';
  do {
    const [next, members] = await redis.zscan(fleet.index, cursor, 'COUNT', PAGE);
    cursor = next;
    for (let index = 0; index < members.length; index += 2)
      await lookAfter(members[index] ?? '', members[index + 1] ?? '', streamBytes, deps);
  } while (cursor !== '0');
  return nextStreamBytes(streamBytes, parseMemory(await redis.info('memory')));
}

/** `score`: when the index says that the session was last submitted to. */
async function lookAfter(member: string, score: string, streamBytes: number, deps: UpkeepDeps): Promise<void> {
  const { redis, fleet } = deps;
  const keys = toSessionKeys(fleet.namespace, member);
  const life = keys === undefined ? null : await redis.hget(keys.state, 'life');
  if (keys === undefined || (life !== 'open' && life !== 'closing')) {
    await forget(redis, fleet, member, score);
    return;
  }
  const swept = await sweep(redis, keys, { retentionMs: LIMITS.retentionMs, streamBytes });
  for (const { inbox, entryId, event } of swept.ended) {
    await notify(redis, keys.namespace, inbox, {
      tenant: keys.tenant,
      session: keys.session,
      entryId,
      event,
      result: '',
    });
  }
  const job = { tenant: keys.tenant, session: keys.session };
  if (swept.host !== '') await sayIfUnreachable(keys, swept.host, deps);
  if (swept.unfinished && !(await deps.jobs.has(job))) {
    deps.logger.info({ [ATTRIBUTES.sessionId]: keys.session }, 'session.requeued');
    await deps.jobs.ensure(job, 0);
  }
}

/** U2: known by the key that a live host keeps alive. */
async function sayIfUnreachable(keys: SessionKeys, hostId: string, { redis, logger }: UpkeepDeps): Promise<void> {
  if ((await redis.exists(hostKeys(keys.namespace, hostId).alive)) === 1) return;
  const fence = await redis.hget(keys.state, 'fence');
  if (fence === null || !(await note(redis, keys, Number(fence), 'host.unreachable', { hostId }))) return;
  logger.warn({ 'host.id': hostId, [ATTRIBUTES.sessionId]: keys.session }, 'host.unreachable');
}

/** The index is outside this process: what is no session of ours is dropped from it. */
function toSessionKeys(namespace: string, member: string): SessionKeys | undefined {
  const [tenant, session, ...rest] = member.split(':');
  const parsed = [
    namespaceSchema.safeParse(namespace),
    tenantIdSchema.safeParse(tenant),
    sessionIdSchema.safeParse(session),
  ];
  if (rest.length > 0 || parsed.some(({ success }) => !success)) return undefined;
  return sessionKeys(namespace, tenant as string, session as string);
}
