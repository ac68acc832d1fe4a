import type { SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import type { Phase } from './generation.ts';
import { fromStoredImage, type StoredImage } from './stored-image.ts';

export interface StoredSession {
  phase: Phase;
  generation: string;
  /** Plain copy of its placement: the class, and unvalidated JSON. */
  placementClass: string;
  placement: string;
  status: 'queued' | 'starting' | 'ready' | 'lost';
  host: string;
  /** newest fence, 0 before the first */
  fence: number;
  /** id of the running entry, or empty */
  running: string;
  epoch: number;
  /** ms by the clock of Redis */
  createdAt: number;
  activeAt: number;
  /** Time of the close (ms by the clock of Redis), and the data of `session.closed`. 0 and empty before the close. */
  closedAt: number;
  closedWith: string;
  /** True if the state of the closed session expires soon, because nobody will read it. */
  isDiscarded: boolean;
  image: StoredImage | undefined;
  /** How its last shell began: `warm`, or `cold` with a reason. Empty before the first. */
  start: string;
  /** Node of the cluster that has its shell, or empty. */
  node: string;
  /** What the start of its sandbox waits for, in the words of the cluster. Empty if nothing is known. */
  waitsFor: string;
  /** number of waiting entries */
  waiting: number;
  /** id of the head when it is held, or empty */
  held: string;
  /** True if an entry runs, can be started or be checked for admission, or the session is closing. */
  hasWork: boolean;
}

const FIELDS = [
  'phase',
  'generation',
  'class',
  'placement',
  'status',
  'host',
  'fence',
  'running',
  'epoch',
  'createdAt',
  'activeAt',
  'held',
  'closedAt',
  'closedWith',
  'image',
  'imageDigest',
  'start',
  'node',
  'waitsFor',
  'discard',
];

/** Reads a session's state, if it exists. Calls of one turn share a round trip. Throws QUEUE_UNAVAILABLE. */
export async function readStoredSession(redis: Redis, keys: SessionKeys): Promise<StoredSession | undefined> {
  const [fields, waiting, head] = await Promise.all([
    redis.hmget(keys.state, ...FIELDS),
    redis.llen(keys.queue),
    redis.lindex(keys.queue, 0),
  ]).catch(throwQueueError);
  const [
    phase,
    generation,
    placementClass,
    placement,
    status,
    host,
    fence,
    running,
    epoch,
    createdAt,
    activeAt,
    held,
    closedAt,
    closedWith,
    image,
    imageDigest,
    start,
    node,
    waitsFor,
    discard,
  ] = fields;
  if (!phase) return undefined;
  return {
    phase: phase as Phase,
    generation: generation ?? '',
    placementClass: placementClass ?? '',
    placement: placement ?? '',
    status: (status ?? 'queued') as StoredSession['status'],
    host: host ?? '',
    fence: Number(fence ?? 0),
    running: running ?? '',
    epoch: Number(epoch ?? 0),
    createdAt: Number(createdAt ?? 0),
    activeAt: Number(activeAt ?? 0),
    closedAt: Number(closedAt ?? 0),
    closedWith: closedWith ?? '',
    isDiscarded: Boolean(discard),
    image: fromStoredImage(`${imageDigest ?? ''} ${image ?? ''}`),
    start: start ?? '',
    node: node ?? '',
    waitsFor: waitsFor ?? '',
    waiting,
    held: head !== null && head === held ? head : '',
    hasWork: Boolean(running) || phase === 'closing' || isRunnable(head, held),
  };
}

/**
 * Reads the owner of an open session, '' without one, and the sandbox of its last ready shell, '' without one.
 * Returns undefined when Redis knows nothing of the session.
 */
export async function readSandboxOwner(
  redis: Redis,
  keys: SessionKeys,
): Promise<{ host: string; sandboxId: string } | 'closed' | undefined> {
  const [phase, host, shell] = await redis.hmget(keys.state, 'phase', 'host', 'shell').catch(throwQueueError);
  if (!phase) return undefined;
  if (phase === 'closed') return phase;
  return { host: host ?? '', sandboxId: shell?.split(' ')[1] ?? '' };
}

/** Returns true for a head that is not held, like the prelude's `runnable`. */
export function isRunnable(head: string | null, held: string | null | undefined): boolean {
  return head !== null && head !== held;
}
