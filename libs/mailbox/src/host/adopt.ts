import { type Entry, toTaken } from '../entry.ts';
import { asArray, asNumber, asString } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/adopt');

export interface Adopted {
  type: 'adopted';
  life: 'open' | 'closing';
  generation: string;
  /** sealed */
  spec: string;
  /** shells that the session has had */
  epoch: number;
  /** the epoch that a Result last said: a smaller one than `epoch` means that the loss of a shell is still to be said */
  saidEpoch: number;
  /** shells before those of the sandbox that was last announced */
  epochBase: number;
  /**
   * where the session's shell was last ready; undefined when it has none, or was given up. Any other sandbox that is found is a stranger: it
   * was left behind by an older owner, or is newer than anything that ran. Until a new shell is ready it stays what it was, so a take-over
   * that broke off finds the same.
   */
  shell?: { host: string; sandbox: string };
  /** the shell that was last said to be ready; a later one may lack its preparation */
  preparedEpoch: number;
  waiting: number;
  createdAt: number;
  /** the owner before this fence, or empty: the same however often this is called */
  previousHost: string;
  /** what was running under an earlier owner, or an earlier life of this one */
  running?: Entry;
}

/** The job with which a host comes: the queue that it was in, and the life of the session for which it was added, if that is known. */
export interface AdoptedJob {
  placementClass: string;
  generation?: string;
}

/**
 * `misplaced`: the job was left from an earlier life of the session and waited in a queue in which this life does not belong.
 * Becomes the owner under `owner.fence`, unless a newer owner is known. The first step of every take-over and every reconnection. */
export async function adopt(
  owner: Owner,
  job?: AdoptedJob,
): Promise<Adopted | { type: 'closed' | 'misplaced' } | Fenced> {
  const args = [owner.fence, owner.host, job?.generation ?? '', job?.placementClass ?? ''];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -2) return { type: 'closed' };
  if (reply[0] === -3) return { type: 'misplaced' };
  const [host = '', sandbox = ''] = asString(reply[11]).split(' ');
  const running = toTaken(asArray(reply[8], script.name));
  return {
    type: 'adopted',
    life: reply[1] === 'closing' ? 'closing' : 'open',
    generation: asString(reply[2]),
    spec: asString(reply[3]),
    epoch: asNumber(reply[4]),
    saidEpoch: asNumber(reply[9]),
    epochBase: asNumber(reply[10]),
    preparedEpoch: asNumber(reply[12]),
    waiting: asNumber(reply[5]),
    createdAt: asNumber(reply[6]),
    previousHost: asString(reply[7]),
    ...(host === '' ? {} : { shell: { host, sandbox } }),
    ...(running.type === 'empty' ? {} : { running: running.entry }),
  };
}
