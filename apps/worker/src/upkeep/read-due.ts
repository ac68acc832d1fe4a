import { readStoredSession, type StoredSession } from '@shellfleet/mailbox';
import { hostKeys, type SessionKeys, sessionIdSchema, sessionKeys, tenantIdSchema } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { passOver, type UpkeepDeps } from './upkeep-deps.ts';

const PAGE = 1_000;

export interface IndexedSession {
  keys: SessionKeys;
  /** Score as text, which is compared with the stored one before a write. */
  score: string;
}

export interface FoundSession extends IndexedSession {
  /** Stored state, if there is one. */
  state: StoredSession | undefined;
  /** State of the owner. `gone` means not seen for the retention. Empty when the session has no owner. */
  owner: 'alive' | 'silent' | 'gone' | '';
}

/** Returns the clock of Redis in ms. */
export async function readRedisTime(redis: Redis): Promise<number> {
  const [seconds = 0, micros = 0] = (await redis.time()).map(Number);
  return seconds * 1_000 + Math.floor(micros / 1_000);
}

type Deps = Pick<UpkeepDeps, 'redis' | 'fleet' | 'retentionMs'>;

/** Returns the sessions that are in use or due. The cost does not depend on the size of the index. */
export async function readDue({ redis, fleet }: Deps, nowMs: number): Promise<IndexedSession[]> {
  const due = new Map<string, IndexedSession>();
  for (let offset = 0; ; offset += PAGE) {
    const pairs = await redis.zrange(
      fleet.index,
      '-inf',
      String(nowMs),
      'BYSCORE',
      'LIMIT',
      offset,
      PAGE,
      'WITHSCORES',
    );
    for (const session of await parsePairs(pairs, { redis, fleet })) due.set(session.keys.member, session);
    if (pairs.length < 2 * PAGE) return [...due.values()];
  }
}

/** Returns one page of the whole index, for work that has no due time. */
export async function readPage(
  cursor: string,
  deps: Pick<Deps, 'redis' | 'fleet'>,
): Promise<{ next: string; sessions: IndexedSession[] }> {
  const [next, pairs] = await deps.redis.zscan(deps.fleet.index, cursor, 'COUNT', PAGE);
  return { next, sessions: await parsePairs(pairs, deps) };
}

/** Reads the states of several sessions. Leaves out those whose keys hold unexpected data. */
export async function readStates(
  sessions: readonly IndexedSession[],
  deps: Deps & Pick<UpkeepDeps, 'logger'>,
): Promise<FoundSession[]> {
  const read = sessions.map(async (session) => ({ session, state: await readStoredSession(deps.redis, session.keys) }));
  const settled = read.map((reading, index) =>
    reading.catch((error) => passOver(error, sessions[index]!.keys, deps.logger)),
  );
  const found = (await Promise.all(settled)).filter((reading) => reading !== undefined);
  const owners = await readOwners(
    found.map(({ state }) => state?.host ?? ''),
    deps,
  );
  return found.map(({ session, state }) => ({ ...session, state, owner: owners.get(state?.host ?? '') ?? '' }));
}

async function parsePairs(
  pairs: readonly string[],
  { redis, fleet }: Pick<Deps, 'redis' | 'fleet'>,
): Promise<IndexedSession[]> {
  const sessions: IndexedSession[] = [];
  for (let index = 0; index < pairs.length; index += 2) {
    const [member = '', score = ''] = pairs.slice(index, index + 2);
    const keys = toSessionKeys(fleet.namespace, member);
    if (keys === undefined) await redis.zrem(fleet.index, member);
    else sessions.push({ keys, score });
  }
  return sessions;
}

async function readOwners(
  all: readonly string[],
  { redis, fleet, retentionMs }: Deps,
): Promise<Map<string, FoundSession['owner']>> {
  const hosts = [...new Set(all)].filter((host) => host !== '');
  const read = hosts.map(async (host): Promise<[string, FoundSession['owner']]> => {
    if ((await redis.exists(hostKeys(fleet.namespace, host).alive)) === 1) return [host, 'alive'];
    const seenAt = Number((await redis.zscore(fleet.hosts, host)) ?? 0);
    return [host, Date.now() - seenAt > retentionMs ? 'gone' : 'silent'];
  });
  return new Map(await Promise.all(read));
}

/** Parses a member of the index. Undefined when invalid: any process may have written to Redis. */
function toSessionKeys(namespace: string, member: string): SessionKeys | undefined {
  const [tenant, session, ...rest] = member.split(':');
  const parsed = [tenantIdSchema.safeParse(tenant), sessionIdSchema.safeParse(session)];
  if (rest.length > 0 || parsed.some(({ success }) => !success)) return undefined;
  return sessionKeys(namespace, tenant as string, session as string);
}
