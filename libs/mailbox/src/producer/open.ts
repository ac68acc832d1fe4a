import type { SessionKeys } from '@shellfleet/protocol';
import { asArray, asString, retentionOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { DRIVER_GONE_MS } from './renew-driver.ts';

const script = defineMailboxScript('producer/open');

export type Opened =
  /** `driven`: the generation ends with its drivers. */
  | { type: 'created' | 'attached'; generation: string; driven: boolean }
  /** A generation with another digest is open; `spec` is its sealed spec. The same spec has another digest under another seal key. */
  | { type: 'conflict'; spec: string; generation: string }
  /** The previous generation is still ending. */
  | { type: 'closing' };

/**
 * Records a session, or attaches to its open generation. `sealSpec` is called when a generation begins: its spec is sealed for its generation. `attachTo`: with 'same-spec' an open generation with another digest is a conflict, with 'any'
 * it is not; default: 'same-spec' if a digest is given. `placement`: a copy of the placement in clear text, by which jobs are routed. `driven`: the caller is a driver; a generation that begins so is closed when no driver is alive and it has nothing to do.
 */
export async function open(
  redis: Redis,
  keys: SessionKeys,
  sealSpec: (generation: string) => string,
  digest?: string,
  attachTo: 'same-spec' | 'any' = digest === undefined ? 'any' : 'same-spec',
  placement = { placementClass: '', json: '' },
  driven = false,
): Promise<Opened> {
  const argsFor = (sealed: string, generation: string) => [
    sealed,
    digest ?? '',
    attachTo === 'any' ? '1' : '0',
    retentionOf(redis, keys.namespace),
    placement.placementClass,
    placement.json,
    generation,
    driven ? DRIVER_GONE_MS : '',
  ];
  const call = async (sealed: string, generation: string) =>
    asArray(await runOnSession(redis, script, keys, argsFor(sealed, generation)), script.name);
  let reply = await call('', '');
  while (reply[0] === 3) {
    const generation = asString(reply[1]);
    reply = await call(sealSpec(generation), generation);
  }
  if (reply[0] === 0) return { type: 'closing' };
  if (reply[0] === -1) return { type: 'conflict', spec: asString(reply[1]), generation: asString(reply[2]) };
  const generation = asString(reply[1]);
  if (reply[0] === 1) return { type: 'created', generation, driven };
  return { type: 'attached', generation, driven: reply[2] === 1 };
}
