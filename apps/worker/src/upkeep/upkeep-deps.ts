import type { SessionJobs } from '@shellfleet/placement';
import { ATTRIBUTES, type FleetKeys, type SessionKeys } from '@shellfleet/protocol';
import { isRedisDown, isRedisFull, toQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

/** Sessions that are read at once. */
export const PAGE = 100;

export interface UpkeepDeps {
  redis: Redis;
  fleet: FleetKeys;
  jobs: SessionJobs;
  logger: Logger;
  intervalMs: number;
  /** How long ended commands are kept, a session that nobody uses, and a host that is gone. */
  retentionMs: number;
  /** How long a session is looked at in every round after a producer noted it in the index. */
  quietMs: number;
  /** Ids of this host's seal keys. */
  sealKeys: readonly string[];
  /** How long no live host may have a session's seal key before what waits in it is ended. */
  keyPatienceMs: number;
}

/** What one round of this process passes to the next. It holds the sessions of the last round only. */
export interface UpkeepMemory {
  /** the most bytes that a session's stream may hold */
  streamBytes: number;
  /** where the walk through the whole index goes on; only while Redis is too full */
  cursor: string;
  /** by member */
  seen: Map<string, SeenSession>;
}

/** Times are ms of the process's clock. */
export interface SeenSession {
  score: string;
  /** when this process first saw this score */
  since: number;
  sweptAt: number;
  /** An entry ran or waited in it at that time. */
  sweptActive?: boolean;
  /** when this process first found no live host with its seal key; absent while there is one */
  keyUnknownSince?: number;
  /** its held head, which asked nothing in the last round */
  loose?: string | undefined;
}

/** A full Redis refuses what adds data. Upkeep goes on, and makes room. */
export function ignoreFull(error: unknown): undefined {
  if (!isRedisFull(toQueueError(error))) throw error;
}

/** What Redis replies about one session, whose keys may hold anything, keeps no other from upkeep. Throws when Redis is away. */
export function passOver(error: unknown, { session }: SessionKeys, logger: Logger): undefined {
  if (isRedisFull(toQueueError(error))) return;
  if (isRedisDown(error, 'throw')) throw error;
  logger.warn({ err: error, [ATTRIBUTES.sessionId]: session }, 'upkeep.failed');
}
