import { setTimeout as delay } from 'node:timers/promises';
import { fleetKeys, parseSessionsQueue } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Number of slots that each tenant held at one time (ms, by `performance.now()`). */
export interface HeldSlots {
  at: number;
  held: Map<string, number>;
}

const SAMPLE_EVERY_MS = 50;

/** Counts the slots that each tenant holds: its active jobs in all classes, on all hosts. */
export async function readHeldSlots(redis: Redis, keyspace: string): Promise<HeldSlots> {
  const fleet = fleetKeys(keyspace);
  const names = await redis.zrange(fleet.queues, '0', '-1');
  const at = performance.now();
  const counts = await Promise.all(names.map((name) => redis.llen(`${fleet.sessionQueues}:${name}:active`)));
  const held = new Map<string, number>();
  for (const [index, name] of names.entries()) {
    const tenant = parseSessionsQueue(name)?.tenant ?? '';
    held.set(tenant, (held.get(tenant) ?? 0) + (counts[index] ?? 0));
  }
  return { at, held };
}

/** Counts the held slots again and again for this time. */
export async function sampleHeldSlots(redis: Redis, keyspace: string, forMs: number): Promise<HeldSlots[]> {
  const samples = [await readHeldSlots(redis, keyspace)];
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    await delay(SAMPLE_EVERY_MS);
    samples.push(await readHeldSlots(redis, keyspace));
  }
  return samples;
}

/** Returns the slot time of each tenant (slots × ms) between two times. */
export function slotTimesOf(
  samples: readonly HeldSlots[],
  tenants: readonly string[],
  from: number,
  until: number,
): number[] {
  return tenants.map((tenant) =>
    samples.reduce((sum, { at, held }, index) => {
      const next = samples[index + 1]?.at ?? at;
      return sum + (held.get(tenant) ?? 0) * Math.max(0, Math.min(next, until) - Math.max(at, from));
    }, 0),
  );
}

/** Returns Jain's index: 1 if all parts are equal, 1 ÷ n if one of n has everything. */
export const jain = (parts: readonly number[]): number =>
  parts.reduce((a, b) => a + b, 0) ** 2 / (parts.length * parts.reduce((sum, part) => sum + part ** 2, 0));
