import { LIMITS } from '@shellfleet/protocol';

/** Of Redis' memory: above it the streams give way, so that there is room for what is still to be accepted. */
const FLEET_SHARE = 0.6;
const LEAST_BYTES = 65_536;

/**
 * How many bytes a session's stream may hold, from one round of upkeep to the next: halved while Redis is fuller than the fleet's share,
 * doubled again when it is not. A Redis without a limit is never too full.
 */
export function nextStreamBytes(current: number, memory: { usedBytes: number; mostBytes: number }): number {
  const tooFull = memory.mostBytes > 0 && memory.usedBytes > memory.mostBytes * FLEET_SHARE;
  return tooFull ? Math.max(LEAST_BYTES, current / 2) : Math.min(LIMITS.sessionStreamBytes, current * 2);
}

/** Reads the answer of INFO memory. */
export function parseMemory(info: string): { usedBytes: number; mostBytes: number } {
  const read = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return { usedBytes: read('used_memory'), mostBytes: read('maxmemory') };
}
