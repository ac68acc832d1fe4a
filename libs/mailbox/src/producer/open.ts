import type { SessionKeys } from '@shellfleet/protocol';
import { asArray, asString, retentionOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { DRIVER_GONE_MS } from './renew-driver.ts';

const script = defineMailboxScript('producer/open');

export type Opened =
  /** `driven` tells that the generation ends with its drivers. */
  | { type: 'created' | 'attached'; generation: string; driven: boolean }
  /** An open generation has another digest, which may be that of the same spec under another seal key. */
  | { type: 'conflict'; spec: string; generation: string }
  | { type: 'closing' };

/**
 * Records a session, or attaches to its open generation. `sealSpec` seals the spec for a new generation. With
 * 'same-spec', an open generation with another digest is a conflict. `placement` is the plain copy for routing.
 * `driven`: a new generation is closed once it has no live driver and nothing to do.
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
