import { randomUUID } from 'node:crypto';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/hold');

/**
 * Keeps the head from starting until `answerHeld` releases or ends it (MAILBOX-5), also while the session is released.
 * `request` is the data of `approval.requested`. `not-head`: the entry has ended or runs, or the generation is ending.
 */
export async function hold(
  owner: Owner,
  entryId: string,
  admission: string,
  request: object,
  callId: string = randomUUID(),
): Promise<{ type: 'held' | 'not-head' } | Fenced> {
  const args = [owner.fence, owner.host, entryId, admission, JSON.stringify(request), callId];
  const reply = await runOnSession(owner.redis, script, owner.keys, args);
  if (reply === -1) return FENCED;
  return { type: reply === 1 ? 'held' : 'not-head' };
}
