import { encodeWireResult, newResult, type SessionKeys, type ShellfleetError } from '@shellfleet/protocol';
import { asArray, retentionOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { CANCELLED_IN_ONE_CALL } from '../producer/cancel.ts';
import { type Closed, toEndedEntries } from '../producer/close.ts';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('upkeep/fail-waiting');

/** Ends every waiting entry of a session without owner, unstarted. Returns them, with the inboxes to notify. */
export async function failWaitingEntries(
  redis: Redis,
  keys: SessionKeys,
  generation: string,
  error: ShellfleetError,
): Promise<Closed['ended']> {
  const result = encodeWireResult(newResult({ outcome: 'error', error: error.toJSON() }));
  const args = [generation, result, retentionOf(redis, keys.namespace), CANCELLED_IN_ONE_CALL];
  const all: Closed['ended'] = [];
  for (;;) {
    const ended = toEndedEntries(asArray(await runOnSession(redis, script, keys, args), script.name));
    all.push(...ended);
    if (ended.length === 0) return all;
  }
}
