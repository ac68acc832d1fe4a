import { encodeWakeUp, type FleetKeys, type ToolJob, toolJobId, toolQueue } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import type { Queue } from '@shellfleet/vendor/bullmq';
import type { Redis } from 'ioredis';
import { SendWindow } from './send-window.ts';

const JOBS_UNDER_WAY = 200;

/** The queues in which tool calls wait for a host, one per tool, on the main connection. */
export class ToolsQueue {
  readonly #redis: Redis;
  readonly #fleet: FleetKeys;
  readonly #queues = new Map<string, Promise<Queue>>();
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

  async has(name: string, call: string): Promise<boolean> {
    return (await (await this.#queue(name)).getJob(toolJobId(call))) !== undefined;
  }

  /** Removes the job of a call that needs no host any more. */
  async remove(name: string, call: string): Promise<void> {
    await (await this.#queue(name)).remove(toolJobId(call));
  }

  async #add(name: string, job: ToolJob): Promise<void> {
    const options = { jobId: toolJobId(job.call), attempts: 1, removeOnComplete: true, removeOnFail: true };
    await (await this.#queue(name)).add('call', job, options);
    // The wake-up is sent after the job was added, so that a host that receives it finds the job.
    await this.#redis.publish(this.#fleet.toolsWakeUps, encodeWakeUp({ type: 'tool', name }));
  }

  #queue(name: string): Promise<Queue> {
    const opening = this.#queues.get(name) ?? this.#open(name);
    this.#queues.set(name, opening);
    return opening;
  }

  async #open(name: string): Promise<Queue> {
    const { Queue } = await import('@shellfleet/vendor/bullmq');
    const queue = new Queue(toolQueue(name), {
      connection: this.#redis,
      prefix: this.#fleet.tools,
      streams: { events: { maxLen: 0 } },
    });
    // Without this listener an error would end the process. The call in which the error occurred rejects.
    queue.on('error', () => {});
    return queue;
  }
}
