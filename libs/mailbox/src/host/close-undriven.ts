import { asArray } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/close-undriven');

/**
 * Begins to close a driven session without a live driver and without work. With `look` it only checks, and returns
 * `undriven` if the close could begin.
 */
export async function closeUndriven(
  owner: Owner,
  how: 'close' | 'look',
): Promise<{ type: 'closing' | 'closing-before' | 'undriven' | 'stays' } | Fenced> {
  const args = [owner.fence, owner.host, how === 'close' ? '1' : '0'];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  if (reply[0] === 3) return { type: 'closing-before' };
  return { type: reply[0] === 1 ? 'closing' : reply[0] === 2 ? 'undriven' : 'stays' };
}
