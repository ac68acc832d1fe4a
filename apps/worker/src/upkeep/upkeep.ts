import { LIMITS } from '@shellfleet/protocol';
import type { Settling } from '../lease/settling.ts';
import { readPage } from './read-page.ts';
import { reconcile } from './reconcile.ts';
import { nextStreamBytes, parseMemory } from './stream-budget.ts';
import type { UpkeepDeps, UpkeepMemory } from './upkeep-deps.ts';

// Restores the fleet's invariants after a process died between two steps. Every worker runs it; a short lock in Redis keeps the rounds of
// several workers from overlapping.
//
// UPKEEP-1. A session that can run something, without owner and job, gets a job with the class and priority of its own.
// UPKEEP-2. A session whose owner sends no heartbeat is reported as unreachable, once per fence.
// UPKEEP-3. Data older than its retention, or over its budget, is deleted. A waiting entry whose start deadline has passed is ended.

/** Rounds begin only while the fleet is settled: otherwise hosts that are up may look lost. */
export function startUpkeep(deps: UpkeepDeps, settling: Pick<Settling, 'settled'>): { close(): Promise<void> } {
  const memory: UpkeepMemory = { streamBytes: LIMITS.sessionStreamBytes, sweptAt: new Map() };
  let round: Promise<void> | undefined;
  const timer = setInterval(() => {
    if (!settling.settled) return;
    round ??= runRound(deps, memory)
      .catch((err: unknown) => deps.logger.warn({ err }, 'upkeep.failed'))
      .finally(() => {
        round = undefined;
      });
  }, deps.intervalMs);
  return {
    async close() {
      clearInterval(timer);
      await round;
    },
  };
}

async function runRound(deps: UpkeepDeps, memory: UpkeepMemory): Promise<void> {
  const { redis, fleet, intervalMs } = deps;
  const locked = await redis.set(`${fleet.admission}:upkeep`, '1', 'PX', Math.floor(intervalMs * 0.9), 'NX');
  if (locked === null) return;
  let cursor = '0';
  do {
    const page = await readPage(cursor, deps);
    cursor = page.next;
    for (const session of page.sessions) await reconcile(session, deps, memory);
  } while (cursor !== '0');
  memory.streamBytes = nextStreamBytes(memory.streamBytes, parseMemory(await redis.info('memory')));
}
