import { asArray, asNumber, asString } from '@shellfleet/redis';
import { fromStoredImage, type StoredImage } from '../read/stored-image.ts';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { type Entry, toTaken } from './entry.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/adopt');

export interface Adopted {
  type: 'adopted';
  phase: 'open' | 'closing';
  generation: string;
  /** sealed */
  spec: string;
  /** number of shells that the session has had */
  epoch: number;
  /** The epoch that a Result last reported. While it is smaller than `epoch`, the loss of a shell is still to be reported. */
  reportedEpoch: number;
  /** number of shells before those of the sandbox that was last announced */
  epochBase: number;
  /**
   * Host and sandbox of the shell that was last ready; undefined when the session has none, or was released. No other sandbox may be
   * adopted: an older owner left it behind, or nothing has run in it. The value changes only when a new shell is ready, so it is the same
   * when an interrupted take-over is repeated.
   */
  shell?: { host: string; sandbox: string };
  /** epoch of the shell that was last announced as ready; a later shell may not be prepared yet */
  preparedEpoch: number;
  /** Why the shell that an owner gave up was ended, or empty. */
  loss: string;
  /** Its generation ends when no driver is alive and it has nothing to do. */
  driven: boolean;
  /** The image of its last container, if it had one. */
  image?: StoredImage | undefined;
  /** number of entries that wait */
  waiting: number;
  createdAt: number;
  /** The owner before this fence, or empty. Repeated calls under one fence return the same value. */
  previousHost: string;
  /** the entry that was running under an earlier owner, or before this worker was restarted */
  running?: Entry;
}

/** The job that the host has fetched: the class of its queue, and the generation of the session for which it was added, if that is known. */
export interface AdoptedJob {
  placementClass: string;
  generation?: string | undefined;
}

/**
 * Becomes the owner under `owner.fence`, unless a newer owner is stored. The first step of every take-over and every reconnection.
 * `wrong-queue`: the job is a leftover of an earlier generation of the session, in the queue of another placement class.
 */
export async function adopt(
  owner: Owner,
  job?: AdoptedJob,
): Promise<Adopted | { type: 'closed' | 'wrong-queue' } | Fenced> {
  const args = [owner.fence, owner.host, job?.generation ?? '', job?.placementClass ?? ''];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -2) return { type: 'closed' };
  if (reply[0] === -3) return { type: 'wrong-queue' };
  const [, phase, generation, spec, epoch, waiting, createdAt, previousHost, entry] = reply;
  const [reportedEpoch, epochBase, shell, preparedEpoch, loss, driven, image] = reply.slice(9);
  const [host = '', sandbox = ''] = asString(shell).split(' ');
  const running = toTaken(asArray(entry, script.name));
  return {
    type: 'adopted',
    phase: phase === 'closing' ? 'closing' : 'open',
    generation: asString(generation),
    spec: asString(spec),
    epoch: asNumber(epoch),
    reportedEpoch: asNumber(reportedEpoch),
    epochBase: asNumber(epochBase),
    preparedEpoch: asNumber(preparedEpoch),
    loss: asString(loss),
    driven: driven === 1,
    image: fromStoredImage(asString(image)),
    waiting: asNumber(waiting),
    createdAt: asNumber(createdAt),
    previousHost: asString(previousHost),
    ...(host === '' ? {} : { shell: { host, sandbox } }),
    ...(running.type === 'empty' ? {} : { running: running.entry }),
  };
}
