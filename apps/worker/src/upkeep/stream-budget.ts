import { LIMITS } from '@shellfleet/protocol';

/** Share of Redis' memory above which streams are cut, to leave room for new commands. */
const FLEET_SHARE = 0.6;
/** Lower limit for a stream, about the size that a short command leaves. */
const LEAST_BYTES = 65_536;

/** Halves the byte limit of streams while Redis uses more than its share; else doubles it, up to the usual one. */
export function nextStreamBytes(current: number, memory: { usedBytes: number; mostBytes: number }): number {
  const tooFull = memory.mostBytes > 0 && memory.usedBytes > memory.mostBytes * FLEET_SHARE;
  return tooFull ? Math.max(LEAST_BYTES, current / 2) : Math.min(LIMITS.sessionStreamBytes, current * 2);
}

export function parseMemory(info: string): { usedBytes: number; mostBytes: number } {
  const read = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return { usedBytes: read('used_memory'), mostBytes: read('maxmemory') };
}
