import type { EventType } from '@shellfleet/protocol';
import { asArray } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/announce');

/** Says how the session's shell fares: its epoch, whether it is ready, and, if anything happened, what. Twice: it is said once. */
export async function announce(
  owner: Owner,
  shell: { epoch: number; epochBase: number; status: 'starting' | 'ready'; sandboxId?: string },
  event?: { type: EventType; data: Record<string, unknown> },
): Promise<{ type: 'said' } | Fenced> {
  const { epoch, epochBase, status } = shell;
  const data = JSON.stringify(event?.data ?? {});
  const args = [owner.fence, owner.host, epoch, status, event?.type ?? '', data, epochBase, shell.sandboxId ?? ''];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  return reply[0] === -1 ? FENCED : { type: 'said' };
}
