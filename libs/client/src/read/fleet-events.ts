import { setTimeout as delay } from 'node:timers/promises';
import { type BriefEvent, readBriefEvents } from '@shellfleet/mailbox';
import {
  eventDataSchemas,
  FLEET_SESSION_EVENTS,
  type FleetEvent,
  type FleetSessionEvent,
  OUTCOMES,
  parseOrThrow,
  sessionIdSchema,
  sessionKeys,
  tenantIdSchema,
  tenantKeys,
  toCommandId,
  tryJson,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { FleetContext } from '../connection/fleet-context.ts';
import { hostChanges } from '../hosts/host-changes.ts';
import { listHosts } from '../hosts/list-hosts.ts';
import { FeedWatch } from './feed-watch.ts';
import { findTenants } from './list-sessions.ts';

export interface FleetEventOptions {
  /**
   * Whether to yield the events of the sessions of all tenants.
   * @default false
   */
  allTenants?: boolean | undefined;
  /**
   * Id of an event, or a time in ms: events from two seconds before it on that Redis still has are yielded first, so
   * that none is missing. Those of hosts are not stored.
   * @default now
   */
  after?: string | undefined;
  /**
   * Whether to continue with later events.
   * @default true
   */
  follow?: boolean | undefined;
  /** Ends the iteration with its reason. */
  signal?: AbortSignal | undefined;
}

interface EventsContext extends FleetContext {
  readonly tenant: string;
  /** Opens a connection for subscriptions. */
  openSubscriber(): Redis;
}

/** Events of one round are yielded in the order of their ids. */
const ROUND_MS = 250;
const HOSTS_EVERY_MS = 1_000;
/** Time by which events of different sessions may be read in another order than that of their ids. */
const OVERLAP_MS = 2_000;
const PAGE = 500;
/** Sessions that are read together. */
const TOGETHER = 50;

const afterSchema = z.string().regex(/^\d{1,15}(?:-\d{1,20})?$/, 'must be the id of an event, or a time in ms');

/** Yields what happens in the fleet. Nothing is published for it: a reader subscribes to the feeds of the sessions. */
export async function* followFleetEvents(
  context: EventsContext,
  { allTenants = false, after, follow = true, signal }: FleetEventOptions,
): AsyncGenerator<FleetEvent> {
  const given = after === undefined ? undefined : parseOrThrow(afterSchema, after, 'COMMAND_INVALID', '`after`');
  const tenant = allTenants ? undefined : context.tenant;
  const startMs = given === undefined ? await readTimeMs(context.redis) : Number(given.split('-')[0]) - OVERLAP_MS;
  using watch = new FeedWatch(context.openSubscriber(), context.namespace, tenant, `${Math.max(0, startMs)}-0`);
  await watch.subscribed;
  if (given !== undefined) await noteAll(context, tenant, watch);
  let hosts = await listHosts(context);
  let hostsAt = performance.now();
  for (;;) {
    signal?.throwIfAborted();
    if (watch.takeGap()) yield { at: new Date().toISOString(), type: 'events.missed' };
    yield* await retryWhileRedisIsDown(() => readChanged(context, watch), signal, { errorReplies: 'throw' });
    if (!follow) return;
    if (performance.now() - hostsAt >= HOSTS_EVERY_MS) {
      const now = await retryWhileRedisIsDown(() => listHosts(context), signal, { errorReplies: 'throw' });
      const at = new Date().toISOString();
      for (const change of hostChanges(hosts, now)) yield { at, ...change };
      hosts = now;
      hostsAt = performance.now();
    }
    await watch.wait(HOSTS_EVERY_MS, signal);
    // Events that come together are read together.
    await delay(ROUND_MS);
  }
}

async function readTimeMs(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time().catch(throwQueueError);
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** Notes all sessions that Redis has, open or closed. */
async function noteAll(context: FleetContext, tenant: string | undefined, watch: FeedWatch) {
  const { redis, namespace } = context;
  for (const name of tenant === undefined ? await findTenants(context) : [tenant]) {
    const { index, closed } = tenantKeys(namespace, name);
    const [open, ended] = await Promise.all([redis.zrange(index, '0', '-1'), redis.zrange(closed, '0', '-1')]).catch(
      throwQueueError,
    );
    for (const session of [...open, ...ended]) watch.note(`${name}:${session}`);
  }
}

/** Reads the events of the sessions that have changed. Those that could not be read are read the next time. */
async function readChanged(context: FleetContext, watch: FeedWatch): Promise<FleetSessionEvent[]> {
  const changed = watch.take();
  const read: ReadSession[] = [];
  try {
    for (let at = 0; at < changed.length; at += TOGETHER)
      read.push(...(await Promise.all(changed.slice(at, at + TOGETHER).map((one) => readSession(context, one)))));
  } catch (error) {
    for (const { member } of changed) watch.note(member);
    throw error;
  }
  for (const { member, last } of read) if (last !== undefined) watch.wasRead(member, last);
  return read.flatMap(({ events }) => events).sort((a, b) => (a.at === b.at ? 0 : a.at < b.at ? -1 : 1));
}

interface ReadSession {
  member: string;
  events: FleetSessionEvent[];
  /** Id of the last event that was read, if there was any. */
  last: string | undefined;
}

async function readSession(
  { redis, namespace }: FleetContext,
  { member, after }: { member: string; after: string },
): Promise<ReadSession> {
  const [tenant = '', session = ''] = member.split(':');
  // Any process may publish to a channel.
  if (!tenantIdSchema.safeParse(tenant).success || !sessionIdSchema.safeParse(session).success)
    return { member, events: [], last: undefined };
  const keys = sessionKeys(namespace, tenant, session);
  const found: FleetSessionEvent[] = [];
  for (let last: string | undefined; ; ) {
    const page = await readBriefEvents(redis, keys, last ?? after, PAGE);
    for (const event of page.events) found.push(...toFleetEvent(event, tenant, session));
    last = page.last ?? last;
    if (!page.more) return { member, events: found, last };
  }
}

const typeSchema = z.enum(FLEET_SESSION_EVENTS);
const outcomeSchema = z.enum(OUTCOMES);
/** The reason of a request is sealed. */
const requestSchema = z.object({ id: z.string(), expiresAt: z.string() });

/** Returns the event, if it is one that operators follow, and valid: the stream is untrusted. */
function toFleetEvent({ id, type: given, entryId, data }: BriefEvent, tenant: string, sessionId: string) {
  const type = typeSchema.safeParse(given).data;
  if (type === undefined) return [];
  const parsed = parseData(type, data);
  if (parsed === undefined) return [];
  const at = new Date(Number(id.split('-')[0])).toISOString();
  const ofEntry = entryId === '' ? {} : { commandId: toCommandId(sessionId, entryId) };
  return [{ id, at, type, tenant, sessionId, ...ofEntry, data: parsed } as FleetSessionEvent];
}

function parseData(type: (typeof FLEET_SESSION_EVENTS)[number], data: string): unknown {
  if (type === 'command.completed') {
    const outcome = outcomeSchema.safeParse(data).data;
    return outcome && { outcome };
  }
  if (type === 'approval.requested') return requestSchema.safeParse(tryJson(data)).data;
  return eventDataSchemas[type].safeParse(tryJson(data)).data;
}
