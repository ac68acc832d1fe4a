import { asArray } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/refuse-request');

/**
 * Takes back an unsigned cancellation of `entryId` or, without an `entryId`, an unsigned close. `changed`: another
 * request has come.
 */
export async function refuseRequest(
  owner: Owner,
  { entryId = '', signed }: { entryId?: string; signed: string },
): Promise<{ type: 'taken-back' | 'changed' } | Fenced> {
  const args = [owner.fence, owner.host, entryId, signed];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  return { type: reply[0] === 1 ? 'taken-back' : 'changed' };
}
