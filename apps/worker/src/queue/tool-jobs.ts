import { type Repetition, repeat } from '@shellfleet/concurrency';
import { endCall, requeue, takeCall } from '@shellfleet/placement';
import { type FleetKeys, tenantOfToolQueue, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

// The queues of tools: calls wait there, in order, for a host that offers the tool and has room.
//
// TOOL-JOB-1. A job only brings a call to a host. The start and the result of the call are stored elsewhere, so a job
//     that is delivered again (its host died between two steps) runs nothing twice.
// TOOL-JOB-2. No connection is opened for a tool, because no call here blocks.

/** Call from the queue. Its data is not validated yet, because any client of the tenant can write it. */
export interface FoundToolJob {
  /** Tenant of the queue. */
  tenant: string;
  id: string;
  data: unknown;
  remove(): Promise<void>;
}

export interface ToolJobs {
  /** Fetches the next call of this tool, from the tenant whose turn it is. Throws QUEUE_UNAVAILABLE. */
  fetch(tool: string): Promise<FoundToolJob | undefined>;
  close(): Promise<void>;
}

interface ToolJobsOptions {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
}

/** Longest time between the fetch of a job and its removal. After that other hosts may fetch it. */
const LOCK_MS = 10_000;
const STALLED_INTERVAL_MS = 5_000;

export function createToolJobs({ redis, fleet, hostId }: ToolJobsOptions): ToolJobs {
  const requeueing: Repetition = repeat(
    async () => {
      const { tools: prefix, toolQueues: names, toolsRequeued: guard } = fleet;
      await requeue(redis, { prefix, names, guard }, STALLED_INTERVAL_MS);
    },
    // An error is ignored: the next round repeats the call, and the fetch reports that Redis is away.
    { everyMs: STALLED_INTERVAL_MS, onError: () => {} },
  );

  return {
    async fetch(tool) {
      const held = await takeCall(redis, fleet, { tool, host: hostId, lockMs: LOCK_MS });
      if (held === undefined) return undefined;
      return {
        tenant: tenantOfToolQueue(held.queue),
        id: held.id,
        data: tryJson(held.data),
        async remove() {
          // If this fails, the job is delivered again, which is harmless (TOOL-JOB-1).
          await endCall(redis, fleet, held, hostId).catch(() => {});
        },
      };
    },
    close: () => requeueing.close(),
  };
}
