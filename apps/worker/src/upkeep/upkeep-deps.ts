import type { SessionJobs } from '@shellfleet/placement';
import { ATTRIBUTES, type FleetKeys, type SessionKeys } from '@shellfleet/protocol';
import { isRedisDown, isRedisFull, toQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import type { LogFields, Logger } from '../log/logger.ts';
import type { IndexPosition } from './read-due.ts';

/** Number of sessions that are read together. */
export const PAGE = 100;

export interface UpkeepDeps {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  jobs: SessionJobs;
  logger: Logger;
  intervalMs: number;
  /** Time for which ended commands, unused sessions and gone hosts are kept. */
  retentionMs: number;
  /** Time for which every round examines a session after a producer noted it in the index. */
  quietMs: number;
  /** Returns the tenants with a quota of disk. */
  diskQuotas(): readonly string[];
  /** Ids of this host's seal keys. */
  sealKeys: readonly string[];
  /** Time without a live host that has a session's seal key, after which the waiting entries fail. */
  keyPatienceMs: number;
}

/** What one round passes to the next. */
export interface UpkeepMemory {
  /** Current byte limit of a session's stream. */
  streamBytes: number;
  /** Position of the walk through all indexes, which runs only while Redis is too full. */
  position: IndexPosition;
  /** Sessions of the last round of this worker by member. */
  seen: Map<string, SeenSession>;
  /** Time from which other workers may do the upkeep (ms of the process's clock). */
  turnEndsAt: number;
}

/** Times are in ms of the process's clock. */
export interface SeenSession {
  score: string;
  /** Time when this process first saw this score. */
  since: number;
  sweptAt: number;
  /** Whether the session had a running or waiting entry at `sweptAt`. */
  sweptActive?: boolean;
  /** Time when this process first found no live host with the session's seal key. Absent while there is one. */
  keyUnknownSince?: number;
  /** Held head that asked no question in the last round. */
  loose?: string | undefined;
}

/** Ignores that a full Redis refuses a write. Upkeep continues and makes room. */
export function ignoreFull(error: unknown): undefined {
  if (!isRedisFull(toQueueError(error))) throw error;
}

/**
 * Logs an error about one session or tenant, whose keys may hold anything, and continues. Throws when Redis is down.
 * `about` names the session or tenant.
 */
export function passOver(error: unknown, about: LogFields, logger: Logger): undefined {
  if (isRedisFull(toQueueError(error))) return;
  if (isRedisDown(error, 'throw')) throw error;
  logger.warn({ err: error, ...about }, 'upkeep.failed');
}

/** Returns the fields of a log that name a session. */
export const sessionFields = ({ tenant, session }: SessionKeys): LogFields => ({
  [ATTRIBUTES.tenant]: tenant,
  [ATTRIBUTES.sessionId]: session,
});
