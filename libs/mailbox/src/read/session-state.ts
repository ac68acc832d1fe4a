import type { SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import type { Phase } from './generation.ts';
import { fromStoredImage, type StoredImage } from './stored-image.ts';

/** The stored state of a session, without its spec. */
export interface StoredSession {
  phase: Phase;
  generation: string;
  /** the copy of its placement in clear: the class, and JSON. Neither is validated here. */
  placementClass: string;
  placement: string;
  status: 'queued' | 'starting' | 'ready' | 'lost';
  /** its owner, or empty */
  host: string;
  /** the newest fence, 0 before the first */
  fence: number;
  /** id of the running entry, or empty */
  running: string;
  epoch: number;
  /** by the clock of Redis, ms */
  createdAt: number;
  activeAt: number;
  /** Of a closed one: when it was closed, by the clock of Redis, ms; and the data of its `session.closed`. Else 0 and empty. */
  closedAt: number;
  closedWith: string;
  /** The image of its last container, if it had one. */
  image: StoredImage | undefined;
  /** number of entries that wait */
  waiting: number;
  /** id of the head when it is held, or empty */
  held: string;
  /** An entry runs, or can be started or checked for admission, or the session is closing: without a job the session needs one. */
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
];

/** Undefined when the session does not exist. Calls of one turn of the event loop share a round trip. Throws QUEUE_UNAVAILABLE. */
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
    image: fromStoredImage(image ?? ''),
    waiting,
    held: head !== null && head === held ? head : '',
    hasWork: Boolean(running) || phase === 'closing' || isRunnable(head, held),
  };
}

/** The prelude's `runnable` for readers: there is a head, and it is not held. */
export function isRunnable(head: string | null, held: string | null | undefined): boolean {
  return head !== null && head !== held;
}
