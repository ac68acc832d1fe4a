import type { Redis } from 'ioredis';

/** Tolerated difference of two clocks. It does no harm, because deadlines and expiries are at least minutes long. */
const TOLERATED_MS = 60_000;

/** Returns by how many ms the clock of this process is ahead of the clock of Redis. Returns 0 when TIME fails. */
export async function readClockAhead(redis: Redis): Promise<number> {
  const askedAt = Date.now();
  const told: unknown = await redis.time().catch(() => undefined);
  if (!Array.isArray(told)) return 0;
  const atRedis = Number(told[0]) * 1_000 + Number(told[1]) / 1_000;
  return Number.isFinite(atRedis) ? Math.round((askedAt + Date.now()) / 2 - atRedis) : 0;
}

/** Returns a warning if the clocks differ by more than a minute. */
export function describeClock(aheadMs: number, place: string): string | undefined {
  if (Math.abs(aheadMs) < TOLERATED_MS) return undefined;
  const minutes = Math.round(Math.abs(aheadMs) / 60_000);
  const where = aheadMs > 0 ? 'ahead of' : 'behind';
  return `The clock of this machine is ${minutes} min ${where} that of Redis at ${place}, so deadlines and expiries are off. Set both by NTP.`;
}
