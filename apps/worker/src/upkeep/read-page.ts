import {
  hostKeys,
  namespaceSchema,
  type SessionKeys,
  sessionIdSchema,
  sessionKeys,
  tenantIdSchema,
} from '@shellfleet/protocol';
import type { UpkeepDeps } from './upkeep.ts';

const PAGE = 100;

/** A session as a round of upkeep finds it. */
export interface FoundSession {
  keys: SessionKeys;
  /** its score in the index: when it was last submitted to */
  score: string;
  life: string | null;
  generation: string;
  /** the copy of its placement in clear, as `open` stored it */
  placement: string;
  /** the owner, or '' */
  host: string;
  hostAlive: boolean;
  fence: string;
  /** An entry runs or waits, or the life is being closed. */
  unfinished: boolean;
}

type Deps = Pick<UpkeepDeps, 'redis' | 'fleet'>;

/** Reads one page of the index, and the state of each session on it. All sessions of a page are read at once. */
export async function readPage(cursor: string, deps: Deps): Promise<{ next: string; sessions: FoundSession[] }> {
  const { redis, fleet } = deps;
  const [next, pairs] = await redis.zscan(fleet.index, cursor, 'COUNT', PAGE);
  const indexed: { keys: SessionKeys; score: string }[] = [];
  for (let index = 0; index < pairs.length; index += 2) {
    const [member = '', score = ''] = pairs.slice(index, index + 2);
    const keys = toSessionKeys(fleet.namespace, member);
    if (keys === undefined) await redis.zrem(fleet.index, member);
    else indexed.push({ keys, score });
  }
  const sessions = await Promise.all(indexed.map(({ keys, score }) => readSession(keys, score, deps)));
  const alive = await readAlive(sessions, deps);
  return { next, sessions: sessions.map((session) => ({ ...session, hostAlive: alive.has(session.host) })) };
}

async function readSession(
  keys: SessionKeys,
  score: string,
  { redis }: Deps,
): Promise<Omit<FoundSession, 'hostAlive'>> {
  const [[life = null, host, fence, run, generation, placement], waiting] = await Promise.all([
    redis.hmget(keys.state, 'life', 'host', 'fence', 'run', 'gen', 'placement'),
    redis.llen(keys.queue),
  ]);
  return {
    keys,
    score,
    life,
    generation: generation ?? '',
    placement: placement ?? '',
    host: host ?? '',
    fence: fence ?? '',
    unfinished: Boolean(run) || waiting > 0 || life === 'closing',
  };
}

/** The owners whose heartbeat is in Redis. */
async function readAlive(sessions: readonly { host: string }[], { redis, fleet }: Deps): Promise<Set<string>> {
  const hosts = [...new Set(sessions.map(({ host }) => host))].filter((host) => host !== '');
  const beats = await Promise.all(hosts.map((host) => redis.exists(hostKeys(fleet.namespace, host).alive)));
  return new Set(hosts.filter((_, index) => beats[index] === 1));
}

/** Undefined for a member that names no session: the index is in Redis, where anything may have written to it. */
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
