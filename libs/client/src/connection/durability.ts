import { ShellfleetError } from '@shellfleet/protocol';
import {
  infoOfNewConnection,
  isCluster,
  mastersOf,
  parseInfo,
  type RedisHistory,
  toQueueError,
} from '@shellfleet/redis';
import type { Redis } from 'ioredis';

/** How Redis confirms a write on its disk: by every reply (`always`), by WAITAOF (`wait`), or not at all (`none`). */
export type Durability = 'always' | 'wait' | 'none';

const WAIT_MS = 1_500;

/** The durability of a connection's Redis, which is read again when Redis was replaced or restarted. */
export class DurabilityOfRedis {
  readonly #redis: Redis;
  readonly #history: Pick<RedisHistory, 'changes'>;
  #mode: Durability = 'none';
  #readAt = -1;

  constructor(redis: Redis, history: Pick<RedisHistory, 'changes'>) {
    this.#redis = redis;
    this.#history = history;
  }

  /** The mode of the last reading. */
  get mode(): Durability {
    return this.#mode;
  }

  /** Number of changes of Redis when the mode was read. */
  get readAt(): number {
    return this.#readAt;
  }

  /** Reads the mode. */
  async read(): Promise<void> {
    await this.#read(infoOfNewConnection);
  }

  /** Reads the mode again if Redis has changed. */
  async refresh(): Promise<void> {
    if (this.#history.changes !== this.#readAt) await this.#read(askInfo);
  }

  /**
   * Confirms that a write is on the disk, after the reply to it. `sentAt` is `readAt` before the write. Throws if the
   * write may not be on the disk.
   */
  async confirm(commandId: string, sentAt: number): Promise<void> {
    await this.refresh();
    if (this.#readAt === sentAt) return;
    if (this.#mode === 'wait') return waitUntilOnDisk(this.#redis, commandId);
    if (this.#mode === 'none')
      throw new ShellfleetError(
        'DURABLE_UNSUPPORTED',
        `Command ${commandId} was accepted and runs, but by a Redis that was replaced or restarted meanwhile and cannot promise that it is on disk.`,
        { commandId, accepted: true },
      );
  }

  async #read(ask: typeof askInfo): Promise<void> {
    const { changes } = this.#history;
    this.#mode = await detectDurability(this.#redis, ask);
    this.#readAt = changes;
  }
}

/** Detects the mode. A Cluster needs `always` on every node: WAITAOF names no key, and may reach another node. */
async function detectDurability(redis: Redis, ask: typeof askInfo): Promise<Durability> {
  if (!isCluster(redis)) return detectOfNode(redis, ask);
  const all = await Promise.all(mastersOf(redis).map((node) => detectOfNode(node, ask).catch(() => 'none')));
  return all.every((one) => one === 'always') ? 'always' : 'none';
}

async function askInfo(node: Redis): Promise<Map<string, string>> {
  return parseInfo(await node.info());
}

async function detectOfNode(redis: Redis, ask: typeof askInfo): Promise<Durability> {
  const fields = await ask(redis).catch((error: unknown) => {
    throw toQueueError(error);
  });
  if (fields.get('aof_enabled') !== '1') return 'none';
  // A managed Redis may reject CONFIG but support WAITAOF.
  const [, appendfsync] = await (redis.config('GET', 'appendfsync') as Promise<string[]>).catch(() => []);
  if (appendfsync === 'always') return 'always';
  const [major = 0, minor = 0] = (fields.get('redis_version') ?? '0').split('.').map(Number);
  return major > 7 || (major === 7 && minor >= 2) ? 'wait' : 'none';
}

/** Throws DURABLE_UNSUPPORTED when Redis cannot confirm that a write is on the disk. */
export function requireDurability(durability: Durability): void {
  if (durability !== 'none') return;
  throw new ShellfleetError(
    'DURABLE_UNSUPPORTED',
    'This Redis cannot promise that the command is on disk: it needs appendonly with appendfsync always, or Redis 7.2 or newer with appendonly. Change it, or submit without durable.',
  );
}

/**
 * Waits until the last write is on the disk. The call must be sent directly after the write, on the same connection.
 * On another connection, to which it may be repeated, Redis knows of no write and does not wait.
 */
export async function waitUntilOnDisk(redis: Redis, commandId: string): Promise<void> {
  let isBroken = false;
  const onClose = () => {
    isBroken = true;
  };
  redis.once('close', onClose);
  try {
    const [local] = (await redis.call('WAITAOF', '1', '0', String(WAIT_MS)).catch((error: unknown) => {
      throw toQueueError(error);
    })) as [number];
    if (local >= 1 && !isBroken) return;
  } finally {
    redis.off('close', onClose);
  }
  const why = isBroken
    ? 'the connection broke before Redis had confirmed that it is on its disk'
    : `Redis did not write it to its disk within ${WAIT_MS} ms`;
  throw new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    `Command ${commandId} was accepted, but ${why}. Submit again with the same idempotency key, or go on with fleet.command(id).`,
    { commandId },
  );
}
