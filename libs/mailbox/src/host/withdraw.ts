import { asArray } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { type Taken, toTaken } from './entry.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/withdraw');

/** Withdraws the owner's delegation (MAILBOX-6). Returns the entry that `submit` has started before, if any. */
export async function withdraw({ redis, keys, fence, host }: Owner): Promise<Taken | Fenced> {
  const reply = asArray(await runOnSession(redis, script, keys, [fence, host]), script.name);
  return reply[0] === -1 ? FENCED : toTaken(reply);
}
