import { readStoredSession, type StoredSession } from '@shellfleet/mailbox';
import { listTenants } from '@shellfleet/placement';
import { ATTRIBUTES, hostKeys, type SessionKeys, sessionIdSchema, sessionKeys, tenantKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { passOver, sessionFields, type UpkeepDeps } from './upkeep-deps.ts';

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

type Deps = Pick<UpkeepDeps, 'redis' | 'fleet' | 'retentionMs' | 'logger'>;

/** Returns the sessions of all tenants that are in use or due. The cost does not depend on the size of an index. */
export async function readDue(deps: Deps, nowMs: number): Promise<IndexedSession[]> {
  const tenants = await listTenants(deps.redis, deps.fleet);
  const due = tenants.map((tenant) =>
    readDueOf(tenant, deps, nowMs).catch((error) => passOver(error, { [ATTRIBUTES.tenant]: tenant }, deps.logger)),
  );
  return (await Promise.all(due)).flatMap((sessions) => sessions ?? []);
}

async function readDueOf(tenant: string, { redis, fleet }: Deps, nowMs: number): Promise<IndexedSession[]> {
  const { index } = tenantKeys(fleet.namespace, tenant);
  const due = new Map<string, IndexedSession>();
  for (let offset = 0; ; offset += PAGE) {
    const pairs = await redis.zrange(index, '-inf', String(nowMs), 'BYSCORE', 'LIMIT', offset, PAGE, 'WITHSCORES');
    for (const session of await parsePairs(pairs, tenant, { redis, fleet })) due.set(session.keys.member, session);
    if (pairs.length < 2 * PAGE) return [...due.values()];
  }
}

/** A position in the indexes of all tenants, which are read by the names of the tenants. */
export interface IndexPosition {
  tenant: string;
  cursor: string;
}

/** Returns one page of all indexes, for work that has no due time. After the last index follows the first. */
export async function readPage(
  { tenant: last, cursor }: IndexPosition,
  deps: Pick<Deps, 'redis' | 'fleet'>,
): Promise<{ next: IndexPosition; sessions: IndexedSession[] }> {
  const { redis, fleet } = deps;
  const tenants = await listTenants(redis, fleet);
  const isInside = cursor !== '0' && tenants.includes(last);
  const tenant = isInside ? last : (tenants.find((name) => name > last) ?? tenants[0]);
  if (tenant === undefined) return { next: { tenant: '', cursor: '0' }, sessions: [] };
  const { index } = tenantKeys(fleet.namespace, tenant);
  const [next, pairs] = await redis.zscan(index, isInside ? cursor : '0', 'COUNT', PAGE);
  return { next: { tenant, cursor: next }, sessions: await parsePairs(pairs, tenant, deps) };
}

/** Reads the states of several sessions. Leaves out those whose keys hold unexpected data. */
export async function readStates(sessions: readonly IndexedSession[], deps: Deps): Promise<FoundSession[]> {
  const read = sessions.map(async (session) => ({ session, state: await readStoredSession(deps.redis, session.keys) }));
  const settled = read.map((reading, index) =>
    reading.catch((error) => passOver(error, sessionFields(sessions[index]!.keys), deps.logger)),
  );
  const found = (await Promise.all(settled)).filter((reading) => reading !== undefined);
  const owners = await readOwners(
    found.map(({ state }) => state?.host ?? ''),
    deps,
  );
  return found.map(({ session, state }) => ({ ...session, state, owner: owners.get(state?.host ?? '') ?? '' }));
}

/** Parses a part of a tenant's index, and removes what is no id of a session: any client of the tenant may write it. */
async function parsePairs(
  pairs: readonly string[],
  tenant: string,
  { redis, fleet }: Pick<Deps, 'redis' | 'fleet'>,
): Promise<IndexedSession[]> {
  const sessions: IndexedSession[] = [];
  for (let at = 0; at < pairs.length; at += 2) {
    const [session = '', score = ''] = pairs.slice(at, at + 2);
    if (sessionIdSchema.safeParse(session).success)
      sessions.push({ keys: sessionKeys(fleet.namespace, tenant, session), score });
    else await redis.zrem(tenantKeys(fleet.namespace, tenant).index, session);
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
