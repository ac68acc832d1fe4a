import { EventEmitter } from 'node:events';
import { type BriefEvent, readBriefEvents } from '@shellfleet/mailbox';
import { fleetKeys, type SessionKeys } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import { describe, expect, test, vi } from 'vitest';
import { isLater } from './feed-watch.ts';
import { followFleetEvents } from './fleet-events.ts';

vi.mock(import('@shellfleet/mailbox'), async (original) => ({ ...(await original()), readBriefEvents: vi.fn() }));

const KEYSPACE = 'ns:0123456789ab';

/** A Redis with the streams of a tenant's sessions. */
class FakeRedis extends EventEmitter {
  readonly streams = new Map<string, BriefEvent[]>();
  timeMs = 1_000_000;
  isDown = false;
  /** Called before each read. */
  onRead = (_session: string) => {};
  psubscribe = async () => {};
  disconnect(): void {}
  time = async () => [`${Math.floor(this.timeMs / 1_000)}`, `${(this.timeMs % 1_000) * 1_000}`];
  zrange = async (key: string) => (key.endsWith(':index') ? [...this.streams.keys()] : []);

  add(session: string, type = 'session.queued', ms = this.timeMs): void {
    const events = this.streams.get(session) ?? [];
    const event = { id: `${ms}-${events.length}`, type, entryId: '', data: '{}' };
    this.streams.set(session, [...events, event]);
    this.emit('pmessage', '', `${KEYSPACE}:feed:t:${session}`, event.id);
  }

  output(session: string): void {
    this.emit('pmessage', '', `${KEYSPACE}:feed:t:${session}`, `${this.timeMs}-0 output`);
  }

  read({ session }: SessionKeys, after: string, count: number) {
    this.onRead(session);
    if (this.isDown) throw toQueueError(new Error('Connection is closed.'));
    const stored = this.streams.get(session) ?? [];
    const first = stored.findIndex(({ id }) => isLater(id, after));
    const events = first < 0 ? [] : stored.slice(first, first + count);
    return { events, last: events.at(-1)?.id, more: events.length === count };
  }
}

function follow(redis: FakeRedis, options: { after?: string; follow?: boolean }) {
  vi.mocked(readBriefEvents).mockImplementation(async (_redis, keys, after, count) => redis.read(keys, after, count));
  const context = { redis, namespace: KEYSPACE, fleet: fleetKeys(KEYSPACE), tenant: 't', openSubscriber: () => redis };
  return followFleetEvents(context as never, options);
}

/** Reads so many events, and returns their sessions and types. */
async function read(events: ReturnType<typeof follow>, count: number): Promise<string[]> {
  const seen: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const { value } = await events.next();
    seen.push(value !== undefined && 'sessionId' in value ? `${value.sessionId} ${value.type}` : `${value?.type}`);
  }
  return seen;
}

describe('the events of the fleet', () => {
  test('EVENTS-1: have the history of an active session and what follows, once', async () => {
    const redis = new FakeRedis();
    redis.add('a', 'session.queued', 400_000);
    redis.add('a', 'session.closed', 500_000);
    redis.psubscribe = async () => redis.output('a');
    redis.onRead = () => {
      redis.onRead = () => {};
      redis.timeMs += 10;
      redis.output('a');
      redis.timeMs += 10;
      redis.add('a', 'session.closed');
    };
    const events = follow(redis, { after: '300000' });
    expect(await read(events, 3)).toEqual(['a session.queued', 'a session.closed', 'a session.closed']);
    redis.add('b');
    expect(await read(events, 1)).toEqual(['b session.queued']);
    await events.return(undefined);
  });

  test('have what happened before an output when their read has failed', async () => {
    const redis = new FakeRedis();
    const events = follow(redis, {});
    const first = read(events, 1);
    await vi.waitFor(() => expect(redis.listenerCount('pmessage')).toBe(1));
    await new Promise((resolve) => setTimeout(resolve, 10));
    redis.timeMs += 10;
    redis.isDown = true;
    redis.onRead = () => {
      redis.timeMs += 10;
      redis.output('a');
      redis.onRead = () => {
        redis.isDown = false;
      };
    };
    redis.add('a', 'session.closed');
    expect(await first).toEqual(['a session.closed']);
    await events.return(undefined);
  });

  test('EVENTS-2: are yielded in their order before all stored ones are in memory', async () => {
    const redis = new FakeRedis();
    const stored = Array.from({ length: 25_000 }, (_, index) => ({
      ...{ id: `${500_000 + index}-0`, type: 'session.queued', entryId: '', data: '{}' },
    }));
    redis.streams.set('a', stored);
    let reads = 0;
    redis.onRead = () => {
      reads += 1;
    };
    const events = follow(redis, { after: '400000', follow: false });
    await events.next();
    expect(reads).toBe(40);
    const rest = await Array.fromAsync(events);
    expect(rest.map((event) => 'id' in event && event.id)).toEqual(stored.slice(1).map(({ id }) => id));
  });
});
