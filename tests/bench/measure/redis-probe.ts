import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';

const PROBE = 'bench-probe';
const TURN_MS = 500;
const SETTLED_TURNS = 6;

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

  /** Returns the memory in use once it has not changed for longer than upkeep lets pass between two looks. */
  async settledMemoryBytes(): Promise<number> {
    let before = Number.NaN;
    let settled = 0;
    for (let turn = 0; turn < 40 && settled < SETTLED_TURNS; turn++) {
      const now = Number((await this.#info('memory')).get('used_memory'));
      settled = Math.abs(now - before) < 4_096 ? settled + 1 : 0;
      before = now;
      await delay(TURN_MS);
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
