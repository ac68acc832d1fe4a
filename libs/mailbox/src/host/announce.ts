import type { EventType } from '@shellfleet/protocol';
import { asArray } from '@shellfleet/redis';
import { type StoredImage, toStoredImage } from '../read/stored-image.ts';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/announce');

/** Number of the last call of this process, by which the script recognizes late and repeated calls. */
let calls = 0;

/** Records the state of the session's shell, and adds its event to the stream once. */
export async function announce(
  owner: Owner,
  shell: {
    epoch: number;
    epochBase: number;
    status: 'starting' | 'ready';
    sandbox?: string;
    image?: StoredImage | undefined;
    /** `warm`, or `cold` with a reason. Empty for an adopted shell. */
    start?: string;
    /** Node of the cluster that has its sandbox. */
    node?: string | undefined;
    /** What the start of its sandbox waits for, in the words of the cluster. */
    waitsFor?: string | undefined;
  },
  event?: { type: EventType; data: Record<string, unknown> },
): Promise<{ type: 'recorded' } | Fenced> {
  const { epoch, epochBase, status } = shell;
  const data = JSON.stringify(event?.data ?? {});
  calls += 1;
  const args = [
    epoch,
    status,
    event?.type ?? '',
    data,
    epochBase,
    shell.sandbox ?? '',
    calls,
    toStoredImage(shell.image),
    shell.start ?? '',
    shell.node ?? '',
    shell.waitsFor ?? '',
  ];
  const reply = asArray(
    await runOnSession(owner.redis, script, owner.keys, [owner.fence, owner.host, ...args]),
    script.name,
  );
  return reply[0] === -1 ? FENCED : { type: 'recorded' };
}
