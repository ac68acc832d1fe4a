import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';

const PROBE = 'bench-probe';

/**
 * Reads the resource usage of Redis. Each of its own calls costs Redis about 0.1 ms, and is made outside the measured
 * intervals where possible.
 */
export class RedisProbe {
  readonly #redis: Redis;

  constructor(url: string) {
    this.#redis = new Redis(url, { connectionName: PROBE });
  }

  /** Returns the processor time of the whole server since its start. */
  async cpuUs(): Promise<number> {
    const info = await this.#info('cpu');
    return Math.round((Number(info.get('used_cpu_user')) + Number(info.get('used_cpu_sys'))) * 1e6);
  }

  /** Returns the memory in use once it no longer changes. */
  async settledMemoryBytes(): Promise<number> {
    let before = Number.NaN;
    for (let turn = 0; turn < 20; turn++) {
      const now = Number((await this.#info('memory')).get('used_memory'));
      if (Math.abs(now - before) < 4_096) return now;
      before = now;
      await delay(500);
    }
    return before;
  }

  /** Counts connections by owner: `worker`, `producer`, and those without a name. */
  async connections(): Promise<{ worker: number; producer: number; unnamed: number }> {
    const list = (await this.#redis.client('LIST')) as string;
    const counted = { worker: 0, producer: 0, unnamed: 0 };
    for (const line of list.trim().split('\n')) {
      const name = / name=(\S*)/.exec(line)?.[1] ?? '';
      if (name === PROBE) continue;
      // BullMQ names its own connections: queue, `w` for a worker, and the host.
      if (name.startsWith('shellfleet-worker') || /:w(:|$)/.test(name)) counted.worker += 1;
      else if (name.startsWith('shellfleet-')) counted.producer += 1;
      else counted.unnamed += 1;
    }
    return counted;
  }

  async version(): Promise<string> {
    return (await this.#info('server')).get('redis_version') ?? 'unknown';
  }

  close(): void {
    this.#redis.disconnect();
  }

  async #info(section: string): Promise<Map<string, string>> {
    const text = await this.#redis.info(section);
    return new Map(
      text.split('\r\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
    );
  }
}
