import { setTimeout as delay } from 'node:timers/promises';
import { type FleetEvent, type FleetSessionEvent, type HostInfo, parseOrThrow } from '@shellfleet/protocol';
import { retryWhileRedisIsDown, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { FleetContext } from '../connection/fleet-context.ts';
import { hostChanges } from '../hosts/host-changes.ts';
import { listHosts } from '../hosts/list-hosts.ts';
import { FeedWatch } from './feed-watch.ts';
import { readSessions, readStored, SortedEvents, TOGETHER } from './stored-events.ts';

// EVENTS-1. With a start, what happened before the subscription is read from the streams of all sessions, and what
//     happens later is read by messages. An id divides both, so no event is yielded twice, or left out.
// EVENTS-2. The number of events and sessions in memory is limited, whatever the number of stored ones.

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
/** Sequence number that is later than all others of a millisecond. */
const LAST_SEQ = 2n ** 64n - 1n;

const afterSchema = z.string().regex(/^\d{1,15}(?:-\d{1,20})?$/, 'must be the id of an event, or a time in ms');

/** Yields what happens in the fleet. Nothing is published for it: a reader subscribes to the feeds of the sessions. */
export async function* followFleetEvents(
  context: EventsContext,
  { allTenants = false, after, follow = true, signal }: FleetEventOptions,
): AsyncGenerator<FleetEvent> {
  const given = after === undefined ? undefined : parseOrThrow(afterSchema, after, 'COMMAND_INVALID', '`after`');
  const tenant = allTenants ? undefined : context.tenant;
  const from = `${given === undefined ? 0 : Math.max(0, Number(given.split('-')[0]) - OVERLAP_MS)}-0`;
  if (!follow) {
    if (given !== undefined) yield* readStored(context, tenant, { after: from, until: await now(context) }, signal);
    return;
  }
  const before = await now(context);
  using watch = new FeedWatch(context.openSubscriber(), context.namespace, tenant);
  await watch.subscribed;
  const hosts = await listHosts(context);
  const start = given === undefined ? before : await now(context);
  watch.begin(start);
  if (given !== undefined) yield* readStored(context, tenant, { after: from, until: start }, signal);
  yield* followAll(context, watch, hosts, signal);
}

async function* followAll(
  context: EventsContext,
  watch: FeedWatch,
  known: HostInfo[],
  signal: AbortSignal | undefined,
): AsyncGenerator<FleetEvent> {
  let hosts = known;
  let hostsAt = performance.now();
  for (;;) {
    signal?.throwIfAborted();
    if (watch.takeGap()) yield { at: new Date().toISOString(), type: 'events.missed' };
    yield* readChanged(context, watch, signal);
    if (performance.now() - hostsAt >= HOSTS_EVERY_MS) {
      const found = await retryWhileRedisIsDown(() => listHosts(context), signal, { errorReplies: 'throw' });
      const at = new Date().toISOString();
      for (const change of hostChanges(hosts, found)) yield { at, ...change };
      hosts = found;
      hostsAt = performance.now();
    }
    await watch.wait(HOSTS_EVERY_MS, signal);
    // Events that come together are read together.
    await delay(ROUND_MS);
  }
}

/** Returns an id that is later than those of all events until now, and earlier than those of all that follow. */
async function now({ redis }: FleetContext): Promise<string> {
  const [seconds, micros] = await redis.time().catch(throwQueueError);
  // Events of the same millisecond follow until it is over.
  await delay(2);
  return `${Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)}-${LAST_SEQ}`;
}

/** Yields the events of the sessions that have changed by now. */
async function* readChanged(
  context: FleetContext,
  watch: FeedWatch,
  signal: AbortSignal | undefined,
): AsyncGenerator<FleetSessionEvent> {
  const sorted = new SortedEvents();
  for (let left = watch.changed; left > 0; left -= TOGETHER) {
    for await (const { member, events, last } of readSessions(context, watch.take(Math.min(left, TOGETHER)), signal)) {
      watch.wasRead(member, last);
      sorted.add(events);
      if (sorted.isFull) yield* sorted.take();
    }
  }
  yield* sorted.take();
}
