import { asArray } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/rerun');

/**
 * Starts the running entry again in a new shell, under a newer fence. Refused unless its submitter marked it idempotent and it was not
 * cancelled. Its raw offsets and its seq begin again at 0.
 */
export async function rerun(owner: Owner, entryId: string): Promise<{ type: 'restarted' | 'refused' } | Fenced> {
  const reply = asArray(
    await runOnSession(owner.redis, script, owner.keys, [owner.fence, owner.host, entryId]),
    script.name,
  );
  if (reply[0] === -1) return FENCED;
  return { type: reply[0] === 1 ? 'restarted' : 'refused' };
}
