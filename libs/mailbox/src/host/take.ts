import { asArray } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { type Taken, toTaken } from './entry.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/take');

/** Starts the head durably, before its first byte reaches the shell (MAILBOX-4), once however often it is called. */
export async function take(owner: Owner): Promise<Taken | Fenced> {
  const reply = asArray(
    await runOnSession(owner.redis, script, owner.keys, [owner.fence, owner.host, owner.admission ?? '']),
    script.name,
  );
  return reply[0] === -1 ? FENCED : toTaken(reply);
}
