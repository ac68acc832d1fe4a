import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

// SETTLING-1. After Redis was away, each host first renews its leases (recovery of its connection), and then publishes a heartbeat.
// SETTLING-2. Until every host that was up before has done so, and for 5 s at most, a host takes no session and hands none out again: the
//             locks of the others may have run out meanwhile, while their shells live. A Redis that has lost them names no other host:
//             then it is the whole 5 s.

/** The longest time for which a host waits for the others. */
const SETTLE_MS = 5_000;
const POLL_MS = 200;
/** A host counts as up before the outage when its last heartbeat is at most this much older than this host's last one. */
const RECENT_MS = 10_000;

/** What Redis has lost. `beatAt`: the last heartbeat of this host as Redis has it now. `hosts`: also which hosts were up. */
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

  /** Redis is back. `lastBeatAt`: the time of this host's last heartbeat before. `hostsLost`: Redis has lost which hosts were up. Resolves when the fleet has settled. */
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

  /** The last heartbeats of the other hosts. */
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
