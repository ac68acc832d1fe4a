import { type Notifier, repeat } from '@shellfleet/concurrency';
import type { HostServices } from '../run/host-services.ts';

// A session that is added wakes every host that may take it, and one of them will. In a large fleet each host waits for
// a random time before it looks, so that most find the session taken, which costs Redis little. Sessions that come in
// between share the look.

/** Longest wait, for each host of the fleet. With it, all hosts together look at most ten times in a millisecond. */
const WAIT_MS_PER_HOST = 0.2;
/** Longest wait in any fleet. */
const MOST_WAIT_MS = 50;

/** Interval at which the hosts of the fleet are counted. */
const COUNT_EVERY_MS = 10_000;

/** Counts the hosts of the fleet, those that are silent included, regularly until closed. */
export function countHostsRegularly({ redis, fleet, logger }: Pick<HostServices, 'redis' | 'fleet' | 'logger'>): {
  count(): number;
  close(): Promise<void>;
} {
  let hosts = 0;
  const count = async () => {
    hosts = await redis.zcard(fleet.hosts);
  };
  const rounds = repeat(count, {
    everyMs: COUNT_EVERY_MS,
    onError: (err) => logger.debug({ err }, 'queue.unavailable'),
  });
  void rounds.now();
  return { count: () => hosts, close: rounds.close };
}

/** Returns what notifies `looks` after a random wait, which is none for fleets of a few hosts. */
export function spreadLooks(
  looks: Pick<Notifier, 'notify'>,
  countHosts: () => number,
  random: () => number = Math.random,
): Pick<Notifier, 'notify'> {
  let waits = false;
  return {
    notify() {
      if (waits) return;
      const mostMs = Math.min(MOST_WAIT_MS, WAIT_MS_PER_HOST * countHosts());
      if (mostMs < 1) return looks.notify();
      waits = true;
      setTimeout(() => {
        waits = false;
        looks.notify();
      }, mostMs * random());
    },
  };
}
