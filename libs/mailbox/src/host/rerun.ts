import { LIMITS } from '@shellfleet/protocol';
import { asArray, asNumber } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import type { Entry } from './entry.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/rerun');

/** Starts an idempotent entry again for a new shell, unless it was cancelled, restarted or started three times. */
export async function rerun(
  owner: Owner,
  { id, starts }: Pick<Entry, 'id' | 'starts'>,
): Promise<{ type: 'restarted'; startedAt: number; firstStartedAt: number } | { type: 'refused' } | Fenced> {
  const args = [owner.fence, owner.host, id, starts, LIMITS.idempotentStarts];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  if (reply[0] !== 1) return { type: 'refused' };
  return { type: 'restarted', startedAt: asNumber(reply[1]), firstStartedAt: asNumber(reply[2]) };
}
