import { type Repetition, repeat } from '@shellfleet/concurrency';
import { hostKeys } from '@shellfleet/protocol';
import type { HostServices } from '../run/host-services.ts';

/** Interval at which the request is read although no call has announced it. */
const POLL_MS = 2_000;

/** An operator's request that this host takes nothing new. It is stored in Redis, so later processes follow it too. */
export interface DrainRequest {
  readonly isMade: boolean;
  /** Reads the request now. Never rejects. */
  look(): Promise<void>;
  /** Reads the request regularly until closed. Calls `onChange` when it was made or withdrawn. */
  watch(onChange: () => void): Repetition;
}

export async function readDrainRequest({ redis, fleet, hostId, logger }: HostServices): Promise<DrainRequest> {
  const key = hostKeys(fleet.namespace, hostId).drain;
  let onChange = () => {};
  let isMade = (await redis.exists(key)) === 1;
  const look = async () => {
    const found = await redis.exists(key).catch(() => undefined);
    if (found === undefined || (found === 1) === isMade) return;
    isMade = found === 1;
    logger.info({ 'host.id': hostId }, isMade ? 'worker.draining' : 'worker.drain-undone');
    onChange();
  };
  return {
    get isMade() {
      return isMade;
    },
    look,
    watch(listener) {
      onChange = listener;
      return repeat(look, { everyMs: POLL_MS });
    },
  };
}
