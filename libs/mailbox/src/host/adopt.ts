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
  /** Last epoch that a Result reported. While it is below `epoch`, a lost shell has to be reported. */
  reportedEpoch: number;
  /** number of shells before the last announced sandbox */
  epochBase: number;
  /** Last ready shell, unless the session was released. Any other sandbox is a leftover, or has run nothing. */
  shell?: { host: string; sandbox: string };
  /** Epoch of the last shell that was announced as ready. A later shell may still be starting. */
  preparedEpoch: number;
  /** Reason for the end of the last owner's shell, or empty. */
  loss: string;
  /** True when the generation ends once it has no live driver and nothing to do. */
  driven: boolean;
  image?: StoredImage | undefined;
  waiting: number;
  createdAt: number;
  /** When this ownership began, by the clock of Redis. Repeated calls under one fence return the same value. */
  ownedAt: number;
  /** When the session's last entry started or ended, by the clock of Redis. */
  activeAt: number;
  /** Time in ms by which the clock of this host is ahead of the clock of Redis. */
  clockAheadMs: number;
  /** Owner before this fence, or empty. Repeated calls under one fence return the same value. */
  previousHost: string;
  /** Entry that an earlier owner, or this worker before its restart, left running. */
  running?: Entry;
}

/** Job that the host has fetched: the class of its queue, and the session's generation if known. */
export interface AdoptedJob {
  placementClass: string;
  generation?: string | undefined;
}

/**
 * Makes the host the owner, or confirms that it is. `wrong-queue`: the job is of an earlier generation of another
 * class.
 */
export async function adopt(
  owner: Owner,
  job?: AdoptedJob,
): Promise<Adopted | { type: 'closed' | 'wrong-queue' } | Fenced> {
  const args = [owner.fence, owner.host, job?.generation ?? '', job?.placementClass ?? ''];
  const askedAt = Date.now();
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  const middle = (askedAt + Date.now()) / 2;
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -2) return { type: 'closed' };
  if (reply[0] === -3) return { type: 'wrong-queue' };
  const [, phase, generation, spec, epoch, waiting, createdAt, previousHost, entry] = reply;
  const [reportedEpoch, epochBase, shell, preparedEpoch, loss, driven, image, ownedAt, activeAt, now] = reply.slice(9);
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
    ownedAt: asNumber(ownedAt),
    activeAt: asNumber(activeAt),
    clockAheadMs: Math.round(middle - asNumber(now)),
    previousHost: asString(previousHost),
    ...(host === '' ? {} : { shell: { host, sandbox } }),
    ...(running.type === 'empty' ? {} : { running: running.entry }),
  };
}
