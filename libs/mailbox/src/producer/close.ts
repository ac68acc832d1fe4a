import { encodeWakeUp, encodeWireResult, newResult, type SessionKeys } from '@shellfleet/protocol';
import { asArray, asString, retentionOf, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { CANCELLED_IN_ONE_CALL, CLOSED_UNSTARTED } from './cancel.ts';

const script = defineMailboxScript('producer/close');

export interface Closed {
  /** `closed-before` also stands for a session that was never opened. `closing`: its owner closes it. */
  type: 'closed-before' | 'closed' | 'closing';
  host: string;
  generation: string;
  /** signed request of this producer, or empty */
  signed: string;
  /** entries that this call ended, with the inboxes to notify */
  ended: { inbox: string; entryId: string; event: string }[];
}

const CANCELLED_OUT_OF_REACH = encodeWireResult(
  newResult(
    { outcome: 'cancellation', reason: 'cancelled', cancelReason: 'session closed' },
    {
      shell: { state: 'lost', reason: 'closed while its host was out of reach', epoch: 0 },
    },
  ),
);

/**
 * Ends a generation and its waiting entries. The owner ends the running entry, or this call does if the owner is out of
 * reach.
 */
export async function close(
  redis: Redis,
  keys: SessionKeys,
  generation: string | undefined,
  ownerOutOfReach: boolean,
  sign: (generation: string) => string = () => '',
): Promise<Closed> {
  const closing = generation ?? (await redis.hget(keys.state, 'generation').catch(throwQueueError));
  const signed = closing === null ? '' : sign(closing);
  const args = [
    closing ?? '',
    CLOSED_UNSTARTED,
    ownerOutOfReach ? '1' : '0',
    CANCELLED_OUT_OF_REACH,
    retentionOf(redis, keys.namespace),
    CANCELLED_IN_ONE_CALL,
    keys.wakeUpsPrefix,
    encodeWakeUp({ type: 'session', tenant: keys.tenant, session: keys.session }),
    signed,
  ];
  const ended: Closed['ended'] = [];
  for (;;) {
    const reply = asArray(await runOnSession(redis, script, keys, args), script.name);
    ended.push(...toEndedEntries(asArray(reply[2], script.name)));
    if (reply[0] === 3) continue; // the loop ends when no entry waits: a closing generation accepts none
    const type = reply[0] === 2 ? 'closing' : reply[0] === 1 ? 'closed' : 'closed-before';
    return { type, host: asString(reply[1]), generation: closing ?? '', signed, ended };
  }
}

/** Parses the flat list of inbox, entry, event in a script's reply. */
export function toEndedEntries(list: unknown[]): Closed['ended'] {
  const ended: Closed['ended'] = [];
  for (let index = 0; index + 2 < list.length; index += 3) {
    ended.push({ inbox: asString(list[index]), entryId: asString(list[index + 1]), event: asString(list[index + 2]) });
  }
  return ended;
}
