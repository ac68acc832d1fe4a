import type Docker from 'dockerode';
import type { OwnRedis } from '../../support/own-redis.ts';
import type { TestFleet, TestWorker } from '../../support/start-fleet.ts';
import type { ClientSupervisor } from '../drive/client-supervisor.ts';
import type { RedisProxy } from './redis-proxy.ts';

/** What faults act on. */
export interface Stage {
  fleet: TestFleet;
  docker: Docker;
  redis: OwnRedis;
  /** Its data. */
  redisFolder: string;
  /** By host id. */
  proxies: ReadonlyMap<string, RedisProxy>;
  /** Where a worker reads what its hooks should do, by host id. */
  orderPaths: ReadonlyMap<string, string>;
  clients: ClientSupervisor[];
  /** Sessions whose containers may be ended, because their marks are on the host. */
  exposedSessions: string[];
  /** Small file systems that a fault may fill; none when they cannot be mounted here. */
  smallDisks: { redis?: string; host?: string };
  /** Absent when this run has not started the engine, or was not asked to restart it. */
  restartEngine: (() => Promise<void>) | undefined;
  /** Hosts whose worker a fault has ended now. */
  down: Set<string>;
}

/** A fault that is going on. */
interface OngoingFault {
  target: string;
  /** When a fault is over at once. */
  restoredTo?: number;
  heal(): Promise<void>;
}

/** Undefined when there is nothing now that it could act on; a text when it cannot be injected on this machine. */
export type Injection = (stage: Stage, choice: number) => Promise<OngoingFault | undefined | string>;

export const pickWorker = ({ fleet }: Stage, choice: number): TestWorker =>
  fleet.workers[Math.floor(choice * fleet.workers.length)] as TestWorker;
