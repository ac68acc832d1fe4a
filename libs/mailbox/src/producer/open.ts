import type { SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { asArray, asString } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';

const script = defineMailboxScript('producer/open');

export type Opened =
  | { type: 'created' | 'attached'; generation: string }
  /** A life with another spec is open; this is its sealed spec. */
  | { type: 'conflict'; spec: string }
  /** The life before is still ending. */
  | { type: 'closing' };

/** Records a session, or attaches to the one that lives. `digest` is undefined to attach to whatever lives. */
export async function open(redis: Redis, keys: SessionKeys, sealedSpec: string, digest?: string): Promise<Opened> {
  const reply = asArray(await runOnSession(redis, script, keys, [sealedSpec, digest ?? '']), script.name);
  if (reply[0] === 0) return { type: 'closing' };
  if (reply[0] === -1) return { type: 'conflict', spec: asString(reply[1]) };
  return { type: reply[0] === 1 ? 'created' : 'attached', generation: asString(reply[1]) };
}
