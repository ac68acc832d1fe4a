import { asNumber, REDIS_DEADLINE_MS, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const script = definePlacementScript('requeue');

/** Queues of which jobs are moved. */
interface Queues {
  /** Prefix of their keys. */
  prefix: string;
  /** Sorted set of their names. */
  names: string;
  /** Key that exists while the interval lasts. */
  guard: string;
  /** Sorted set of the names of those that have waiting jobs, if there is one. */
  waiting?: string;
}

/**
 * Moves jobs whose lock has run out to the front of their queues, at most once per interval over all hosts. Returns
 * their number. A call that Redis receives after its deadline does nothing.
 */
export async function requeue(
  redis: Redis,
  { prefix, names, guard, waiting }: Queues,
  intervalMs: number,
): Promise<number> {
  const [seconds] = await redis.time();
  // `seconds` is rounded down, so one is added.
  const notAfter = (Number(seconds) + 1) * 1_000 + REDIS_DEADLINE_MS;
  const keys = [guard, names, ...(waiting === undefined ? [] : [waiting])];
  return asNumber(await runScript(redis, script, keys, [prefix, notAfter, intervalMs]));
}
