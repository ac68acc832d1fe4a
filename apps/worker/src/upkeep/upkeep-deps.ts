import type { SessionJobs } from '@shellfleet/admission';
import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

export interface UpkeepDeps {
  redis: Redis;
  fleet: FleetKeys;
  jobs: SessionJobs;
  logger: Logger;
  intervalMs: number;
}

/** State that one round of this process passes to the next. */
export interface UpkeepMemory {
  /** the most bytes that a session's stream may hold */
  streamBytes: number;
  /** when each session was last swept, by its member, ms of the process's clock */
  sweptAt: Map<string, number>;
}
