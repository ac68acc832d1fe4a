import { randomBytes } from 'node:crypto';
import { SessionsQueue } from '@shellfleet/admission';
import { KeyedCallOrder } from '@shellfleet/concurrency';
import { connectRedis, createSealer, type Sealer } from '@shellfleet/mailbox';
import { type FleetKeys, fleetKeys, type SessionKeys, ShellfleetError, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { monotonicFactory } from 'ulid';
import type { ConnectSettings } from './connect-settings.ts';
import { ToolsQueue } from './queue/tools-queue.ts';
import { Answers } from './results/answers.ts';
import { Inbox } from './results/inbox.ts';
import { PendingResults } from './results/pending-results.ts';
import { Feeds } from './stream/feeds.ts';
import { type Durability, detectDurability } from './submit/durability.ts';
import { SendWindow } from './submit/send-window.ts';

/** What everything in this process that speaks to one fleet shares. Three connections: main, inbox (blocking), feeds (subscriber). */
export interface Producer {
  /** names its inbox */
  id: string;
  redis: Redis;
  namespace: string;
  tenant: string;
  fleet: FleetKeys;
  sealer: Sealer;
  durability: Durability;
  inbox: Inbox;
  pending: PendingResults;
  answers: Answers;
  feeds: Feeds;
  sessions: SessionsQueue;
  tools: ToolsQueue;
  /** what goes to mailboxes */
  window: SendWindow;
  /** writes to open stdins */
  inputOrder: KeyedCallOrder;
  /** Numbers of this process's calls on open stdins; they rise. */
  nextInputNumber(): number;
  /** Ids that rise in the order in which they are asked for. */
  nextId(): string;
  keysOf(sessionId: string): SessionKeys;
  close(): Promise<void>;
}

/** At the speed of a slow Redis, well within the deadline of a call. */
const CALLS_UNDER_WAY = 1_000;
/** Session jobs that are being added at once. */
const JOBS_UNDER_WAY = 200;

export async function createProducer(settings: ConnectSettings): Promise<Producer> {
  const { namespace, tenant } = settings;
  const sealer = createSealer(settings.sealKeys);
  const nextId = monotonicFactory(pooledRandom());
  const id = nextId();
  const { redis, duplicate } = await connectRedis(settings.redisUrl, 'producer', `shellfleet-producer-${id}`);
  const durability = await detectDurability(redis).catch((error: unknown) => {
    redis.disconnect();
    throw error;
  });
  const fleet = fleetKeys(namespace);
  const pending = new PendingResults(redis);
  const answers = new Answers();
  const inbox = new Inbox(() => duplicate('blocking', `shellfleet-inbox-${id}`), redis, namespace, id, {
    pending,
    answers,
  });
  const feeds = new Feeds(() => duplicate('host', `shellfleet-feeds-${id}`));
  const sessions = new SessionsQueue(redis, fleet, new SendWindow(JOBS_UNDER_WAY));
  let inputNumber = 0;
  redis.on('ready', () => {
    void pending.look().catch(() => {});
    feeds.wakeAll();
  });
  return {
    id,
    redis,
    namespace,
    tenant,
    fleet,
    sealer,
    durability,
    inbox,
    pending,
    answers,
    feeds,
    sessions,
    tools: new ToolsQueue(redis, fleet),
    window: new SendWindow(CALLS_UNDER_WAY),
    inputOrder: new KeyedCallOrder(),
    nextInputNumber: () => ++inputNumber,
    nextId,
    keysOf: (sessionId) => sessionKeys(namespace, tenant, sessionId),
    async close() {
      await sessions.settled();
      inbox.close();
      const closed = closedHere();
      feeds.close(closed);
      pending.close(closed);
      answers.close(closed);
      await redis.quit().catch(() => redis.disconnect());
    },
  };
}

function closedHere(): ShellfleetError {
  return new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    'This connection to the fleet was closed. Accepted commands go on; fleet.command(id) of a new connection finds them.',
  );
}

/** Fractions as `ulid` wants them, drawn from the system many at a time: alone, one costs as much as a small call to Redis. */
function pooledRandom(): () => number {
  let pool = Buffer.alloc(0);
  let used = 0;
  return () => {
    if (used === pool.length) {
      pool = randomBytes(1_024);
      used = 0;
    }
    return pool.readUInt8(used++) / 256;
  };
}
