import { listTenants } from '@shellfleet/placement';
import {
  LIMITS,
  labelsSchema,
  parseOrThrow,
  SESSION_STATES,
  type SessionInfo,
  type SessionState,
  sessionKeys,
  tenantKeys,
} from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import { z } from 'zod';
import type { FleetContext } from '../connection/fleet-context.ts';
import { readKept } from './kept.ts';
import { readUses } from './read-tenants.ts';
import { type ListContext, readSessionInfos } from './session-info.ts';

/** Which sessions are listed. */
export interface SessionFilter {
  /**
   * State of the sessions.
   * @default every state but `closed`, and closed ones of which a container is kept
   */
  state?: SessionState | undefined;
  /**
   * Labels that the sessions must have, all of them.
   * @default any
   */
  labels?: Record<string, string> | undefined;
  /**
   * Whether to list also closed sessions whose output can still be read, which is for the fleet's retention.
   * @default false
   * @limit the 100,000 that were closed last
   */
  all?: boolean | undefined;
  /**
   * Id of a session. The sessions then come in the order of their ids, from the one after it on, so that a list can be
   * read page by page. The empty text begins at the first one. It has no meaning with `allTenants`.
   * @default sessions come in no particular order
   */
  after?: string | undefined;
  /**
   * Whether to list the sessions of all tenants, each with its `tenant`. It is for operators.
   * @default false
   */
  allTenants?: boolean | undefined;
}

const filterSchema = z.strictObject({
  state: z.enum(SESSION_STATES, `must be one of ${SESSION_STATES.join(', ')}`).optional(),
  labels: labelsSchema.default({}),
  all: z.boolean('must be true or false').default(false),
  after: z.string('must be a string').max(LIMITS.idChars, `must be at most ${LIMITS.idChars} characters`).optional(),
  allTenants: z.boolean('must be true or false').default(false),
});
type Filter = z.infer<typeof filterSchema>;

const PAGE = 200;

/** Yields sessions in pages. A session that changes meanwhile may show its old or its new state. */
export async function* listSessions(context: ListContext, given: SessionFilter): AsyncGenerator<SessionInfo> {
  const filter = parseOrThrow(filterSchema, given, 'COMMAND_INVALID', 'The filter');
  if (!filter.allTenants) return yield* listOfTenant(context, filter);
  const { redis, namespace, fleet, sessions, place, sealer } = context;
  const keysOf = (tenant: string) => (sessionId: string) => sessionKeys(namespace, tenant, sessionId);
  for (const tenant of await findTenants(context)) {
    const own = { redis, namespace, fleet, sessions, place, sealer, tenant, keysOf: keysOf(tenant) };
    for await (const info of listOfTenant(own, filter)) yield { ...info, tenant };
  }
}

/** Finds the tenants that have open sessions, and those that used anything, whose sessions may be closed by now. */
export async function findTenants({ redis, namespace, fleet }: FleetContext): Promise<string[]> {
  try {
    const [open, uses] = await Promise.all([listTenants(redis, fleet), readUses({ redis, namespace, fleet })]);
    return [...new Set([...open, ...uses.keys()])].sort();
  } catch (error) {
    throw toQueueError(error);
  }
}

async function* listOfTenant(context: ListContext, { state, labels, all, after }: Filter): AsyncGenerator<SessionInfo> {
  const kept = await readKept(context);
  const closed = all || state === 'closed';
  const wanted = (info: SessionInfo) =>
    (state === undefined ? all || info.state !== 'closed' || info.kept !== undefined : info.state === state) &&
    Object.entries(labels).every(([name, value]) => info.labels[name] === value);
  const ids = readAllIds(context, closed, kept);
  for await (const some of after === undefined ? ids : sortedAfter(after, ids))
    for (const info of await readSessionInfos(context, some.map(context.keysOf))) if (wanted(info)) yield info;
}

/** Yields the ids of the sessions of a tenant, each once. */
async function* readAllIds(
  context: ListContext,
  closed: boolean,
  kept: ReadonlyMap<string, unknown>,
): AsyncGenerator<string[]> {
  const seen = new Set<string>();
  const keys = tenantKeys(context.namespace, context.tenant);
  for (const index of closed ? [keys.index, keys.closed] : [keys.index]) {
    for await (const ids of readIds(context, index)) {
      // A scan may return a member twice, and a closed session stays in the first index for a while.
      const fresh = ids.filter((id) => !seen.has(id));
      for (const id of fresh) seen.add(id);
      yield fresh;
    }
  }
  // Closed sessions of which a host keeps a container, and that neither index has returned.
  yield [...kept.keys()].filter((id) => !seen.has(id));
}

/** Yields the ids after one, in their order. Redis has no index in this order, so all ids are read first. */
async function* sortedAfter(after: string, ids: AsyncIterable<string[]>): AsyncGenerator<string[]> {
  const later: string[] = [];
  for await (const some of ids) later.push(...some.filter((id) => id > after));
  later.sort();
  for (let at = 0; at < later.length; at += PAGE) yield later.slice(at, at + PAGE);
}

async function* readIds(context: ListContext, index: string): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const [next, pairs] = await context.redis.zscan(index, cursor, 'COUNT', PAGE).catch((error: unknown) => {
      throw toQueueError(error);
    });
    cursor = next;
    yield pairs.filter((_value, place) => place % 2 === 0);
  } while (cursor !== '0');
}
