import { type Taken, toTaken } from '../entry.ts';
import { asArray } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/clear');

/**
 * Records that `admission`, the digest of the host's rules, admits the head, and starts it in the same step. `not-head`: it has ended, or
 * is held.
 */
export async function clear(
  owner: Owner,
  entryId: string,
  admission: string,
): Promise<Taken | { type: 'not-head' } | Fenced> {
  const args = [owner.fence, owner.host, entryId, admission];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  return reply[0] === -2 ? { type: 'not-head' } : toTaken(reply);
}
