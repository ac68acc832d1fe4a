import { type FleetKeys, sessionsQueue } from '@shellfleet/protocol';
import type { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { fetchOrder, type QueueHead } from './fetch-order.ts';
import type { PlacementClass } from './placement.ts';
import { parseSessionJob, type SessionJob } from './session-job.ts';
import type { SessionQueues } from './session-queues.ts';

interface FetcherOptions {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  offers: readonly PlacementClass[];
  lockMs: number;
}

export interface Fetcher {
  fetch(): Promise<SessionJob | undefined>;
  close(): Promise<void>;
}

/** Takes jobs from the queues of the offered classes. */
export async function createFetcher(options: FetcherOptions, queues: SessionQueues): Promise<Fetcher> {
  const { hostId, offers } = options;
  // A producer imports this package too, and takes no job.
  const { createRedisBackend, Worker } = await import('bullmq');
  const workers = new Map<PlacementClass, Worker>();
  await Promise.all(offers.map((name) => workerOf(name).waitUntilReady()));

  return {
    async fetch() {
      for (const name of await inOrder()) {
        const job = await fetchFrom(name);
        if (job !== undefined) return job;
      }
      return undefined;
    },
    async close() {
      await Promise.allSettled([...workers.values()].map((worker) => worker.close(true)));
    },
  };

  /** With one class there is nothing to compare, and no call to Redis. */
  async function inOrder(): Promise<readonly PlacementClass[]> {
    if (offers.length < 2) return offers;
    const heads = await Promise.all(offers.map(async (name) => ({ name, head: await readHead(name) })));
    return fetchOrder(heads);
  }

  async function readHead(name: PlacementClass): Promise<QueueHead | undefined> {
    const [id] = await queues.waiting(name, 1);
    const job = id === undefined ? undefined : await (await queues.of(name)).getJob(id);
    return job === undefined ? undefined : { priority: job.priority, addedAt: job.timestamp };
  }

  async function fetchFrom(name: PlacementClass): Promise<SessionJob | undefined> {
    for (;;) {
      const job = await workerOf(name).getNextJob(hostId, { block: false });
      if (job === undefined) return undefined;
      const parsed = parseSessionJob(job, name);
      if (parsed !== undefined) return parsed;
      // Its id names no session, so no host can do anything with it.
      await job.moveToCompleted(null, hostId, false);
    }
  }

  function workerOf(name: PlacementClass): Worker {
    const known = workers.get(name);
    if (known !== undefined) return known;
    const workerOptions = {
      connection: options.redis,
      prefix: options.fleet.admission,
      autorun: false,
      name: hostId,
      lockDuration: options.lockMs,
    };
    // ADMISSION-4: without this factory BullMQ opens a second connection for blocking calls, of which there are none.
    const worker = new Worker(sessionsQueue(name), null, workerOptions, (queue, opts) =>
      createRedisBackend(queue, opts),
    );
    // A failure rejects the call that met it.
    worker.on('error', () => {});
    workers.set(name, worker);
    return worker;
  }
}
