import { type Repetition, repeat } from '@shellfleet/concurrency';
import { hostKeys } from '@shellfleet/protocol';
import type { HostServices } from '../run/host-services.ts';

/** Interval at which the requests are read although no call has announced them. */
const POLL_MS = 2_000;

/** What operators ask of this host. It is stored in Redis, so later processes of the host follow it too. */
export interface OperatorRequests {
  /** Whether the host takes nothing new and gives up its sessions without a shell. */
  readonly drained: boolean;
  /** Whether the host takes no session that it does not have already. */
  readonly cordoned: boolean;
  /** Reads the requests now. Never rejects. */
  look(): Promise<void>;
  /** Reads the requests regularly until closed. Calls `onChange` when one was made or withdrawn. */
  watch(onChange: () => void): Repetition;
}

export async function readOperatorRequests({ redis, fleet, hostId, logger }: HostServices): Promise<OperatorRequests> {
  const keys = hostKeys(fleet.namespace, hostId);
  const read = async () => {
    const [drain, cordon] = await redis.mget(keys.drain, keys.cordon);
    return { drained: drain !== null, cordoned: cordon !== null };
  };
  let onChange = () => {};
  let made = await read();
  const look = async () => {
    const found = await read().catch(() => made);
    const { drained, cordoned } = made;
    if (found.drained === drained && found.cordoned === cordoned) return;
    made = found;
    if (found.drained !== drained) logger.info(found.drained ? 'worker.draining' : 'worker.drain-undone');
    if (found.cordoned !== cordoned) logger.info(found.cordoned ? 'worker.cordoned' : 'worker.uncordoned');
    onChange();
  };
  return {
    get drained() {
      return made.drained;
    },
    get cordoned() {
      return made.cordoned;
    },
    look,
    watch(listener) {
      onChange = listener;
      return repeat(look, { everyMs: POLL_MS });
    },
  };
}
