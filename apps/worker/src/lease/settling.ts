import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

// SETTLING-1. After Redis was away, each host first renews its leases, and then publishes a heartbeat.
// SETTLING-2. Until every host that was up before has done so, for at most 5 s, a host takes no session and requeues
//     none: other hosts' locks may have expired while their shells live. The wait is 5 s if Redis lost which hosts were
//     up.

const SETTLE_MS = 5_000;
const POLL_MS = 200;
/** Most time by which another host's last heartbeat may precede this host's, if it was up before the outage. */
const RECENT_MS = 10_000;

/** Returns what Redis has lost. `beatAt` is this host's last heartbeat that Redis still has. */
export function lossOf(beatAt: string | null, lastBeatAt: number): 'nothing' | 'newest' | 'hosts' {
  const missingMs = lastBeatAt - Number(beatAt ?? 0);
  if (missingMs <= 0) return 'nothing';
  return missingMs > RECENT_MS ? 'hosts' : 'newest';
}

export interface SettlingDeps {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  onSettled(): void;
}

/** Whether the hosts of the fleet have renewed their leases since Redis was away. */
export class Settling {
  readonly #deps: SettlingDeps;
  #round = 0;
  #settled = true;

  constructor(deps: SettlingDeps) {
    this.#deps = deps;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /**
   * Begins when Redis is back, and resolves when the fleet has settled. `lastBeatAt` is this host's last heartbeat
   * before the outage. `hostsLost`: Redis has lost which hosts were up.
   */
  async begin(lastBeatAt: number, hostsLost = false): Promise<void> {
    this.#round += 1;
    this.#settled = false;
    const round = this.#round;
    const until = performance.now() + SETTLE_MS;
    let before: Map<string, number> | undefined;
    while (performance.now() < until) {
      const beats = await this.#readBeats().catch(() => undefined);
      if (round !== this.#round) return;
      before ??= beats && new Map([...beats].filter(([, at]) => at >= lastBeatAt - RECENT_MS));
      if (beats !== undefined && before !== undefined && !hostsLost && haveBeaten(before, beats)) break;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      if (round !== this.#round) return;
    }
    this.#settled = true;
    this.#deps.onSettled();
  }

  async #readBeats(): Promise<Map<string, number>> {
    const { redis, fleet, hostId } = this.#deps;
    const flat = await redis.zrange(fleet.hosts, '0', '-1', 'WITHSCORES');
    const beats = new Map<string, number>();
    for (let at = 0; at < flat.length; at += 2) beats.set(flat[at] as string, Number(flat[at + 1]));
    beats.delete(hostId);
    return beats;
  }
}

function haveBeaten(before: Map<string, number>, now: Map<string, number>): boolean {
  return [...before].every(([host, at]) => now.get(host) !== at);
}
