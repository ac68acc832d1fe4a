import { encodeWakeUp, type FleetKeys, type ToolJob, toolJobId, toolQueue } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import type { Queue } from '@shellfleet/vendor/bullmq';
import type { Redis } from 'ioredis';
import { SendWindow } from './send-window.ts';

const JOBS_UNDER_WAY = 200;

/** A call of a tool, in the queue of its tenant. */
export interface QueuedCall {
  tenant: string;
  name: string;
  id: string;
}

/** The queues in which tool calls wait for a host, one for each tool and tenant, on the main connection. */
export class ToolsQueue {
  readonly #redis: Redis;
  readonly #fleet: FleetKeys;
  /** Queues by tenant and name. */
  readonly #queues = new Map<string, Map<string, Promise<Queue>>>();
  readonly #window = new SendWindow(JOBS_UNDER_WAY);

  constructor(redis: Redis, fleet: FleetKeys) {
    this.#redis = redis;
    this.#fleet = fleet;
  }

  /** Adds a call. Throws QUEUE_UNAVAILABLE. */
  async add(name: string, job: ToolJob): Promise<void> {
    try {
      await this.#window.enter(() => this.#add(name, job));
    } catch (error) {
      throw toQueueError(error);
    }
  }

  async has({ tenant, name, id }: QueuedCall): Promise<boolean> {
    return (await (await this.#queue(tenant, name)).getJob(toolJobId(id))) !== undefined;
  }

  /** Removes the job of a call that needs no host any more. */
  async remove({ tenant, name, id }: QueuedCall): Promise<void> {
    await (await this.#queue(tenant, name)).remove(toolJobId(id));
  }

  /** Closes the queues of a tenant that this process uses no longer. */
  forget(tenant: string): void {
    for (const queue of this.#queues.get(tenant)?.values() ?? []) queue.then((open) => open.close()).catch(() => {});
    this.#queues.delete(tenant);
  }

  async #add(name: string, job: ToolJob): Promise<void> {
    const options = { jobId: toolJobId(job.call), attempts: 1, removeOnComplete: true, removeOnFail: true };
    const queue = toolQueue(name, job.tenant);
    // The queue is noted before and after the job is added, as queues of sessions are. The wake-up follows the job, so
    // that a host that receives it finds the job.
    await this.#redis.lpush(this.#fleet.toolsNoted, queue);
    await (await this.#queue(job.tenant, name)).add('call', job, options);
    const wakeUp = encodeWakeUp({ type: 'tool', name });
    await Promise.all([
      this.#redis.lpush(this.#fleet.toolsNoted, queue),
      this.#redis.publish(this.#fleet.toolsWakeUps, wakeUp),
    ]);
  }

  #queue(tenant: string, name: string): Promise<Queue> {
    const queues = this.#queues.get(tenant) ?? new Map<string, Promise<Queue>>();
    this.#queues.set(tenant, queues);
    const opening = queues.get(name) ?? this.#open(toolQueue(name, tenant));
    queues.set(name, opening);
    return opening;
  }

  async #open(name: string): Promise<Queue> {
    const { Queue } = await import('@shellfleet/vendor/bullmq');
    const queue = new Queue(name, {
      connection: this.#redis,
      prefix: this.#fleet.tools,
      streams: { events: { maxLen: 0 } },
    });
    // Without this listener an error would end the process. The call in which the error occurred rejects.
    queue.on('error', () => {});
    return queue;
  }
}
