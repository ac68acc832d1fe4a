import { asArray } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { type Taken, toTaken } from './entry.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/clear');

/** Clears and starts the head in one step, under the digest `admission`. `too-late`: `startBy` (ms) has passed. */
export async function clear(
  owner: Owner,
  entryId: string,
  admission: string,
  startBy?: number,
): Promise<Taken | { type: 'not-head' } | { type: 'too-late' } | Fenced> {
  const args = [owner.fence, owner.host, entryId, admission, startBy ?? ''];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -3) return { type: 'too-late' };
  return reply[0] === -2 ? { type: 'not-head' } : toTaken(reply);
}
