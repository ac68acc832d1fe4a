import { isCluster, mastersOf, parseInfo, toQueueError } from '@shellfleet/mailbox';
import { ShellfleetError } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/**
 * How this Redis confirms that a write is on its disk: `always`: every reply is a confirmation; `wait`: WAITAOF confirms; `none`: it cannot.
 */
export type Durability = 'always' | 'wait' | 'none';

const WAIT_MS = 1_500;

/** Of a Cluster only `always` counts, on every node: WAITAOF names no key, so it may reach another node than the write. */
export async function detectDurability(redis: Redis): Promise<Durability> {
  const all = await Promise.all(mastersOf(redis).map(detectOfNode));
  if (all.every((one) => one === 'always')) return 'always';
  return isCluster(redis) ? 'none' : (all[0] ?? 'none');
}

async function detectOfNode(redis: Redis): Promise<Durability> {
  const info = await redis.info().catch((error: unknown) => {
    throw toQueueError(error);
  });
  const fields = parseInfo(info);
  if (fields.get('aof_enabled') !== '1') return 'none';
  // A managed Redis may reject CONFIG but support WAITAOF.
  const [, appendfsync] = await (redis.config('GET', 'appendfsync') as Promise<string[]>).catch(() => []);
  if (appendfsync === 'always') return 'always';
  const [major = 0, minor = 0] = (fields.get('redis_version') ?? '0').split('.').map(Number);
  return major > 7 || (major === 7 && minor >= 2) ? 'wait' : 'none';
}

/** Throws DURABLE_UNSUPPORTED when Redis cannot confirm. */
export function requireDurability(durability: Durability): void {
  if (durability !== 'none') return;
  throw new ShellfleetError(
    'DURABLE_UNSUPPORTED',
    'This Redis cannot promise that the command is on disk: it needs appendonly with appendfsync always, or Redis 7.2 or newer with appendonly. Change it, or submit without durable.',
  );
}

/** Must be sent directly after the write that it confirms, on the same connection. */
export async function waitUntilOnDisk(redis: Redis, commandId: string): Promise<void> {
  const [local] = (await redis.call('WAITAOF', '1', '0', String(WAIT_MS)).catch((error: unknown) => {
    throw toQueueError(error);
  })) as [number];
  if (local >= 1) return;
  throw new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    `Command ${commandId} was accepted, but Redis did not write it to its disk within ${WAIT_MS} ms. Submit again with the same idempotency key, or go on with fleet.command(id).`,
    { commandId },
  );
}
