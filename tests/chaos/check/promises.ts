// The deviations that each fault permits, by its row of the promises in docs/reliability.md. Every other deviation is a
// violation.

const FAULT_KINDS = [
  'worker-kill',
  'worker-term',
  'worker-stop',
  'worker-stall',
  'worker-clock-jump',
  'host-dead',
  'host-asleep',
  'client-kill',
  'client-term',
  'client-stop',
  'client-asleep',
  'container-kill',
  'container-remove',
  'container-pause',
  'dockerd-restart',
  'redis-kill',
  'redis-stop',
  'redis-restart',
  'redis-restore',
  'redis-failover',
  'redis-full',
  'redis-disk-full',
  'host-disk-full',
  'partition',
  'latency',
  'lost-reply',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/**
 * - `shell-of-session`, `every-shell`: the shell may be lost, and with it its running command; waiting ones may end
 * with SESSION_LOST.
 * - `submits-refused`: a submit may be refused with a code that allows a retry.
 * - `tail`: what was accepted, or ended, since the state that Redis was restored to may be gone.
 * - `results-expired`: a client that slept longer than the retention may find no Result.
 * - `streams-cut`: to make room, the oldest entries of sessions' streams may be removed.
 * - `starts-refused`: what waits for a sandbox may end with SESSION_START_FAILED.
 */
export type Permit =
  | 'shell-of-session'
  | 'every-shell'
  | 'submits-refused'
  | 'tail'
  | 'results-expired'
  | 'streams-cut'
  | 'starts-refused';

export interface FaultPromise {
  /** Name of the event in the table of promises. */
  event: string;
  permits: readonly Permit[];
  /**
   * The part that is away during the fault. A host that is away for longer than a session's lease, by one fault or
   * several, may lose the shell. An outage of Redis alone may last for any time.
   */
  away?: 'host' | 'redis';
}

const killedWorker = { event: 'worker `kill -9` or upgrade, host alive', permits: [], away: 'host' } as const;
const lostHost = { event: 'host lost', permits: [], away: 'host' } as const;
const deadClient = { event: 'producer or client dies', permits: [] };
const lostContainer = { event: 'container out of memory, killed or removed', permits: ['shell-of-session'] } as const;
const redisAway = { event: 'Redis away, for however long', permits: ['submits-refused'], away: 'redis' } as const;
const redisRestart = { event: 'Redis restart', permits: ['submits-refused'], away: 'redis' } as const;
const partition = { event: 'partition between worker and Redis', permits: ['submits-refused'], away: 'host' } as const;
const full = { event: 'disk full, Redis full, pids full', permits: ['submits-refused'], away: 'redis' } as const;

export const PROMISES: Readonly<Record<FaultKind, FaultPromise>> = {
  'worker-kill': killedWorker,
  'worker-term': { event: 'worker SIGTERM', permits: [], away: 'host' },
  'worker-stop': killedWorker,
  'worker-stall': killedWorker,
  'worker-clock-jump': killedWorker,
  'host-dead': lostHost,
  'host-asleep': lostHost,
  'client-kill': deadClient,
  'client-term': deadClient,
  'client-stop': deadClient,
  'client-asleep': { event: 'a client asleep for longer than the retention', permits: ['results-expired'] },
  'container-kill': lostContainer,
  'container-remove': lostContainer,
  'container-pause': { event: lostContainer.event, permits: [] },
  'dockerd-restart': { event: 'Docker daemon restart', permits: ['every-shell'] },
  'redis-kill': redisRestart,
  'redis-stop': redisAway,
  'redis-restart': redisRestart,
  'redis-restore': { event: 'Redis restored from an older state', permits: ['tail', 'submits-refused'], away: 'redis' },
  'redis-failover': {
    event: 'Redis restored from an older state',
    permits: ['tail', 'submits-refused'],
    away: 'redis',
  },
  'redis-full': { ...full, permits: ['submits-refused', 'streams-cut'] },
  'redis-disk-full': full,
  'host-disk-full': { ...full, permits: ['submits-refused', 'starts-refused'] },
  partition,
  latency: partition,
  'lost-reply': partition,
};
