import type Docker from 'dockerode';
import type { OwnRedis } from '../../support/own-redis.ts';
import type { TestFleet, TestWorker } from '../../support/start-fleet.ts';
import type { ClientSupervisor } from '../drive/client-supervisor.ts';
import type { RedisProxy } from './redis-proxy.ts';

/** The processes and files that faults act on. */
export interface Stage {
  fleet: TestFleet;
  docker: Docker;
  redis: OwnRedis;
  /** Directory with the data of Redis. */
  redisDirectory: string;
  /** Proxies by host id. */
  proxies: ReadonlyMap<string, RedisProxy>;
  /** Files from which the hooks of a worker read their orders, by host id. */
  orderPaths: ReadonlyMap<string, string>;
  clients: ClientSupervisor[];
  /** Sessions whose containers may be ended, because their marks are on the host. */
  exposedSessions: string[];
  /** Small file systems that a fault may fill; none when they cannot be mounted here. */
  smallDisks: { redis?: string; host?: string };
  /** Absent when this run has not started the engine, or was not asked to restart it. */
  restartEngine: (() => Promise<void>) | undefined;
  /** Hosts whose worker is ended by a fault at the moment. */
  down: Set<string>;
}

/** A fault that is going on. */
interface OngoingFault {
  target: string;
  /** Time of the state to which Redis was restored, for a fault that is over at once. */
  restoredTo?: number;
  heal(): Promise<void>;
}

/**
 * Injects a fault. Returns undefined when it has no target at the moment, and a text when this machine does not allow
 * it.
 */
export type Injection = (stage: Stage, choice: number) => Promise<OngoingFault | undefined | string>;

export const pickWorker = ({ fleet }: Stage, choice: number): TestWorker =>
  fleet.workers[Math.floor(choice * fleet.workers.length)] as TestWorker;
