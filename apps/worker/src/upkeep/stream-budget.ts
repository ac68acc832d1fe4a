import { LIMITS } from '@shellfleet/protocol';

/** The share of Redis' memory above which streams are cut, so that there is room for new commands. */
const FLEET_SHARE = 0.6;
/** No stream is cut below this: a short command leaves about as much. */
const LEAST_BYTES = 65_536;

/**
 * Returns the most bytes that a session's stream may hold until the next round of upkeep. It is halved in each round in which Redis uses more
 * than the fleet's share, and doubled in each other round, up to the usual limit. A Redis without a memory limit (`mostBytes` 0) counts as empty.
 */
export function nextStreamBytes(current: number, memory: { usedBytes: number; mostBytes: number }): number {
  const tooFull = memory.mostBytes > 0 && memory.usedBytes > memory.mostBytes * FLEET_SHARE;
  return tooFull ? Math.max(LEAST_BYTES, current / 2) : Math.min(LIMITS.sessionStreamBytes, current * 2);
}

/** Parses the reply of `INFO memory`. */
export function parseMemory(info: string): { usedBytes: number; mostBytes: number } {
  const read = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return { usedBytes: read('used_memory'), mostBytes: read('maxmemory') };
}
