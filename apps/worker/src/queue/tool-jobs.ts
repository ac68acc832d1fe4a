import { type FleetKeys, toolQueue } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import { createRedisBackend, type Job, Worker } from '@shellfleet/vendor/bullmq';
import type { Redis } from 'ioredis';

// The queues of tools: calls wait there, in order, for a host that offers the tool and has room.
//
// TOOL-JOB-1. A job only brings a call to a host. The start and the result of the call are stored elsewhere, so a job
//     that is delivered again (its host died between two steps) runs nothing twice.
// TOOL-JOB-2. No connection is opened for a tool, because no call here blocks.

/** Call from the queue. Its data is not validated yet, because any process with access to Redis can write it. */
export interface FoundToolJob {
  id: string;
  data: unknown;
  remove(): Promise<void>;
}

export interface ToolJobs {
  /** Fetches the call that has waited longest for this tool. Throws QUEUE_UNAVAILABLE. */
  fetch(tool: string): Promise<FoundToolJob | undefined>;
  close(): Promise<void>;
}

interface ToolJobsOptions {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  tools: readonly string[];
}

/** Longest time between the fetch of a job and its removal. After that other hosts may fetch it. */
const LOCK_MS = 10_000;
const STALLED_INTERVAL_MS = 5_000;

export async function createToolJobs({ redis, fleet, hostId, tools }: ToolJobsOptions): Promise<ToolJobs> {
  const workers = new Map(tools.map((tool) => [tool, createWorker(tool)]));
  await Promise.all(
    [...workers.values()].map(async (worker) => {
      await worker.waitUntilReady();
      await worker.startStalledCheckTimer();
    }),
  );

  return {
    async fetch(tool) {
      try {
        const job = await workers.get(tool)?.getNextJob(hostId, { block: false });
        return job === undefined ? undefined : toFound(job);
      } catch (error) {
        throw toQueueError(error);
      }
    },
    async close() {
      await Promise.allSettled([...workers.values()].map((worker) => worker.close(true)));
    },
  };

  function createWorker(tool: string): Worker {
    const options = {
      connection: redis,
      prefix: fleet.tools,
      autorun: false,
      name: hostId,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_INTERVAL_MS,
      maxStalledCount: 0,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    };
    // TOOL-JOB-2: without this factory each Worker would open a blocking connection.
    const worker = new Worker(toolQueue(tool), null, options, (name, opts) => createRedisBackend(name, opts));
    // A failure also rejects the call in which it occurred, so this event is ignored.
    worker.on('error', () => {});
    return worker;
  }

  function toFound(job: Job): FoundToolJob {
    return {
      id: job.id ?? '',
      data: job.data,
      async remove() {
        try {
          await job.moveToCompleted(null, hostId, false);
        } catch {
          // The job was removed, or another host fetched it. Otherwise it is delivered again, which is harmless
          // (TOOL-JOB-1).
        }
      },
    };
  }
}
