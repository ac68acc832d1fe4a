import { asArray } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { type Taken, toTaken } from './entry.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/withdraw');

/** Ends the rest that finish() has reported (MAILBOX-6): afterwards nothing is started in the name of this owner. Returns what was started before. */
export async function withdraw({ redis, keys, fence, host }: Owner): Promise<Taken | Fenced> {
  const reply = asArray(await runOnSession(redis, script, keys, [fence, host]), script.name);
  return reply[0] === -1 ? FENCED : toTaken(reply);
}
