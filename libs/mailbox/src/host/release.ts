import type { EventType } from '@shellfleet/protocol';
import { asArray, asString, retentionOf } from '@shellfleet/redis';
import { CANCELLED_IN_ONE_CALL, CLOSED_UNSTARTED } from '../producer/cancel.ts';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/release');

/** Releases a session without work, and ends it if it is closing. `loss` tells the next owner why the shell is gone. */
export async function release(
  owner: Owner,
  status: 'queued' | 'lost',
  event?: { type: EventType; data: { reason: string } },
  waiting: 'refuse' | 'leave' = 'refuse',
  loss = event?.data.reason ?? '',
): Promise<{ type: 'released'; phase: string } | { type: 'busy' } | Fenced> {
  const args = [
    owner.fence,
    owner.host,
    status,
    event?.type ?? '',
    JSON.stringify(event?.data ?? {}),
    retentionOf(owner.redis, owner.keys.namespace),
    CLOSED_UNSTARTED,
    CANCELLED_IN_ONE_CALL,
    waiting === 'leave' ? '1' : '0',
    loss,
  ];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  return reply[0] === 1 ? { type: 'released', phase: asString(reply[1]) } : { type: 'busy' };
}
