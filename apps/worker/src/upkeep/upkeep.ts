import type { SessionJobs } from '@shellfleet/admission';
import { forget, notify, recordNotice, sweep } from '@shellfleet/mailbox';
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
/** A session in which something is unfinished is swept this often, an idle one that often: what it could need has time. */
const SWEEP_UNFINISHED_MS = 5_000;
const SWEEP_IDLE_MS = 60_000;

/** What one round leaves to the next, in this process. */
interface Memory {
  streamBytes: number;
  /** by session member, ms */
  sweptAt: Map<string, number>;
}

/** A session as a round finds it. */
interface Look {
  member: string;
  /** when the index says that it was last submitted to */
  score: string;
  keys: SessionKeys;
  life: string | null;
  host: string;
  fence: string;
  /** Something runs, waits, or is being closed. */
  unfinished: boolean;
}

export function startUpkeep(deps: UpkeepDeps): { close(): Promise<void> } {
  const memory: Memory = { streamBytes: LIMITS.sessionStreamBytes, sweptAt: new Map() };
  let round: Promise<void> | undefined;
  const timer = setInterval(() => {
    round ??= runRound(deps, memory)
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

async function runRound(deps: UpkeepDeps, memory: Memory): Promise<void> {
  const { redis, fleet, intervalMs } = deps;
  const ours = await redis.set(`${fleet.admission}:upkeep`, '1', 'PX', Math.floor(intervalMs * 0.9), 'NX');
  if (ours === null) return;
  let cursor = '0';
  do {
    const [next, members] = await redis.zscan(fleet.index, cursor, 'COUNT', PAGE);
    cursor = next;
    const looks = await lookAt(members, deps);
    const alive = await findAlive(looks, deps);
    for (const look of looks) await lookAfter(look, alive, deps, memory);
  } while (cursor !== '0');
  memory.streamBytes = nextStreamBytes(memory.streamBytes, parseMemory(await redis.info('memory')));
}

/** `members`: members and scores in turn, as a scan answers. All of them are asked for at once. */
async function lookAt(members: readonly string[], { redis, fleet }: UpkeepDeps): Promise<Look[]> {
  const looks: Pick<Look, 'member' | 'keys' | 'score'>[] = [];
  for (let index = 0; index < members.length; index += 2) {
    const [member = '', score = ''] = members.slice(index, index + 2);
    const keys = toSessionKeys(fleet.namespace, member);
    if (keys === undefined) await redis.zrem(fleet.index, member);
    else looks.push({ member, keys, score });
  }
  return Promise.all(
    looks.map(async (look) => {
      const [[life = null, host, fence, run], waiting] = await Promise.all([
        redis.hmget(look.keys.state, 'life', 'host', 'fence', 'run'),
        redis.llen(look.keys.queue),
      ]);
      const unfinished = Boolean(run) || waiting > 0 || life === 'closing';
      return { ...look, life, host: host ?? '', fence: fence ?? '', unfinished };
    }),
  );
}

/** Hosts that a key says to be alive. */
async function findAlive(looks: readonly Look[], { redis, fleet }: UpkeepDeps): Promise<Set<string>> {
  const hosts = [...new Set(looks.map(({ host }) => host))].filter((host) => host !== '');
  const beats = await Promise.all(hosts.map((host) => redis.exists(hostKeys(fleet.namespace, host).alive)));
  return new Set(hosts.filter((_, index) => beats[index] === 1));
}

async function lookAfter(look: Look, alive: Set<string>, deps: UpkeepDeps, memory: Memory): Promise<void> {
  const { redis, fleet } = deps;
  const { member, keys, host, unfinished } = look;
  if (look.life !== 'open' && look.life !== 'closing') {
    memory.sweptAt.delete(member);
    await forget(redis, fleet, member, look.score);
    return;
  }
  const owned = host !== '' && alive.has(host);
  if (host !== '' && !owned) await sayUnreachable(look, deps);
  const now = performance.now();
  const due =
    now - (memory.sweptAt.get(member) ?? -SWEEP_IDLE_MS) >= (unfinished ? SWEEP_UNFINISHED_MS : SWEEP_IDLE_MS);
  if (due) {
    memory.sweptAt.set(member, now);
    await sweepAndTell(keys, deps, memory.streamBytes);
  }
  if (unfinished && (due || !owned)) await giveJob(keys, deps);
}

/** U3 */
async function sweepAndTell(keys: SessionKeys, { redis }: UpkeepDeps, streamBytes: number): Promise<void> {
  const { tenant, session } = keys;
  const { ended } = await sweep(redis, keys, { retentionMs: LIMITS.retentionMs, streamBytes });
  for (const { inbox, entryId, event } of ended) {
    await notify(redis, keys.namespace, inbox, { tenant, session, entryId, event, result: '' });
  }
}

/** U1 */
async function giveJob(keys: SessionKeys, { jobs, logger }: UpkeepDeps): Promise<void> {
  const job = { tenant: keys.tenant, session: keys.session };
  if (await jobs.has(job)) return;
  logger.info({ [ATTRIBUTES.sessionId]: keys.session }, 'session.requeued');
  await jobs.ensure(job, 0);
}

/** U2: known by the key that a live host keeps alive. */
async function sayUnreachable({ keys, host, fence }: Look, { redis, logger }: UpkeepDeps): Promise<void> {
  if (fence === '' || !(await recordNotice(redis, keys, Number(fence), 'host.unreachable', { hostId: host }))) return;
  logger.warn({ 'host.id': host, [ATTRIBUTES.sessionId]: keys.session }, 'host.unreachable');
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
