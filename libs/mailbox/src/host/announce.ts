import type { EventType } from '@shellfleet/protocol';
import { asArray } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/announce');

/** Rises with every call of this process, so that one which arrives late, or again, is known from a newer one. */
let calls = 0;

/** Says how the session's shell fares: its epoch, whether it is ready, and, if anything happened, what. Twice: it is said once. */
export async function announce(
  owner: Owner,
  shell: { epoch: number; epochBase: number; status: 'starting' | 'ready'; sandbox?: string },
  event?: { type: EventType; data: Record<string, unknown> },
): Promise<{ type: 'said' } | Fenced> {
  const { epoch, epochBase, status } = shell;
  const data = JSON.stringify(event?.data ?? {});
  calls += 1;
  const said = [epoch, status, event?.type ?? '', data, epochBase, shell.sandbox ?? '', calls];
  const reply = asArray(
    await runOnSession(owner.redis, script, owner.keys, [owner.fence, owner.host, ...said]),
    script.name,
  );
  return reply[0] === -1 ? FENCED : { type: 'said' };
}
