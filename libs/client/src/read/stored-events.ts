import { type BriefEvent, readBriefEvents } from '@shellfleet/mailbox';
import {
  eventDataSchemas,
  FLEET_SESSION_EVENTS,
  type FleetSessionEvent,
  OUTCOMES,
  sessionKeys,
  tenantKeys,
  toCommandId,
  tryJson,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import { z } from 'zod';
import type { FleetContext } from '../connection/fleet-context.ts';
import { isLater } from './feed-watch.ts';
import { findTenants } from './list-sessions.ts';

/** Sessions that are read together. */
export const TOGETHER = 50;
const PAGE = 500;
/** Events that are kept in memory to be sorted. */
const MOST_SORTED = 20_000;

/** A session, and the id after which it is read. */
interface ReadFrom {
  member: string;
  after: string;
}

interface PageOfSession {
  member: string;
  events: FleetSessionEvent[];
  /** Id of the last entry that was read, if there was any. */
  last: string | undefined;
  more: boolean;
}

/** Yields the events of the sessions behind an id, up to another one that is in the past. */
export async function* readStored(
  context: FleetContext,
  tenant: string | undefined,
  { after, until }: { after: string; until: string },
  signal: AbortSignal | undefined,
): AsyncGenerator<FleetSessionEvent> {
  const sorted = new SortedEvents();
  const tenants = tenant === undefined ? await retried(() => findTenants(context), signal) : [tenant];
  for (const name of tenants) {
    const sessions = await retried(() => findSessions(context, name), signal);
    for (let at = 0; at < sessions.length; at += TOGETHER) {
      const together = sessions.slice(at, at + TOGETHER).map((session) => ({ member: `${name}:${session}`, after }));
      for await (const { events } of readSessions(context, together, signal, until)) {
        sorted.add(events.filter(({ id }) => !isLater(id, until)));
        if (sorted.isFull) yield* sorted.take();
      }
    }
  }
  yield* sorted.take();
}

/** Yields all pages of the sessions; those of one session are in their order. */
export async function* readSessions(
  context: FleetContext,
  sessions: readonly ReadFrom[],
  signal: AbortSignal | undefined,
  until?: string,
): AsyncGenerator<PageOfSession> {
  for (let reading = sessions; reading.length > 0; ) {
    signal?.throwIfAborted();
    const pages = await retried(() => Promise.all(reading.map((one) => readPage(context, one))), signal);
    yield* pages;
    reading = pages.flatMap(({ member, last, more }) =>
      more && last !== undefined && (until === undefined || !isLater(last, until)) ? [{ member, after: last }] : [],
    );
  }
}

/** Events of several sessions, in the order of their times. */
export class SortedEvents {
  #events: FleetSessionEvent[] = [];

  /** Whether the events take enough memory to be passed on. */
  get isFull(): boolean {
    return this.#events.length >= MOST_SORTED;
  }

  add(events: readonly FleetSessionEvent[]): void {
    this.#events.push(...events);
  }

  take(): FleetSessionEvent[] {
    const taken = this.#events;
    this.#events = [];
    return taken.sort((a, b) => (a.at === b.at ? 0 : a.at < b.at ? -1 : 1));
  }
}

/** Returns all sessions that Redis has of a tenant: closed ones, in the order of their ends, and open ones. */
async function findSessions({ redis, namespace }: FleetContext, tenant: string): Promise<string[]> {
  const { index, closed } = tenantKeys(namespace, tenant);
  const [open, ended] = await Promise.all([redis.zrange(index, '0', '-1'), redis.zrange(closed, '0', '-1')]);
  return [...new Set([...ended, ...open])];
}

async function readPage({ redis, namespace }: FleetContext, { member, after }: ReadFrom): Promise<PageOfSession> {
  const [tenant = '', session = ''] = member.split(':');
  const { events, last, more } = await readBriefEvents(redis, sessionKeys(namespace, tenant, session), after, PAGE);
  return { member, events: events.flatMap((event) => toFleetEvent(event, tenant, session)), last, more };
}

const retried = <T>(call: () => Promise<T>, signal: AbortSignal | undefined) =>
  retryWhileRedisIsDown(call, signal, { errorReplies: 'throw' });

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
