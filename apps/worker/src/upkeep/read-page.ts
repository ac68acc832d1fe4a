import { readSessionState, type SessionState } from '@shellfleet/mailbox';
import {
  hostKeys,
  namespaceSchema,
  type SessionKeys,
  sessionIdSchema,
  sessionKeys,
  tenantIdSchema,
} from '@shellfleet/protocol';
import type { UpkeepDeps } from './upkeep-deps.ts';

const PAGE = 100;

/** A session as a round of upkeep finds it. */
export interface FoundSession {
  keys: SessionKeys;
  /** its score in the index: when it was last submitted to */
  score: string;
  /** undefined when nothing is stored of it */
  state: SessionState | undefined;
  /** whether its owner, if it has one, sends heartbeats */
  hostAlive: boolean;
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
  const sessions = await Promise.all(
    indexed.map(async ({ keys, score }) => ({ keys, score, state: await readSessionState(redis, keys) })),
  );
  const alive = await readAlive(
    sessions.map(({ state }) => state?.host ?? ''),
    deps,
  );
  return {
    next,
    sessions: sessions.map((session) => ({ ...session, hostAlive: alive.has(session.state?.host ?? '') })),
  };
}

/** Those of the hosts whose heartbeat is in Redis. */
async function readAlive(all: readonly string[], { redis, fleet }: Deps): Promise<Set<string>> {
  const hosts = [...new Set(all)].filter((host) => host !== '');
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
