import { randomBytes } from 'node:crypto';
import { type ConnectOptions, Fleet } from '@shellfleet/client';
import type { RunScript } from '@shellfleet/worker/test-support';
import type { Redis } from 'ioredis';
import { startFakeShellWorker } from './fake-shell-workers.ts';
import { declareTestFleet, keyspaceOf } from './keyspace.ts';
import { type OwnRedis, startOwnRedis } from './own-redis.ts';
import { runInSh } from './run-in-sh.ts';

/** A Redis for tests of the client, with producers, and with workers whose scripts run as `sh -c`. */
export interface ClientStage extends AsyncDisposable {
  own: OwnRedis;
  redis: Redis;
  namespace: string;
  /** Prefix of the fleet's keys and channels in Redis. */
  keyspace: string;
  sealKey: string;
  connect(options?: ConnectOptions): Promise<Fleet>;
  startHost(options?: { id?: string; slots?: number; env?: NodeJS.ProcessEnv }): Promise<StageHost>;
  /** Every key of the namespace. */
  keys(): Promise<string[]>;
}

export interface StageHost {
  readonly id: string;
  /** Scripts in the order in which they began, by session. */
  readonly began: { session: string; script: string }[];
  /** Stops the worker, as for an upgrade: the shells of its sessions live on. */
  leave(): Promise<void>;
}

/** Starts a stage on the Redis `own`, which several stages can share. Without `own` the stage starts a Redis. */
export async function setClientStage(own?: OwnRedis): Promise<ClientStage> {
  const redisServer = own ?? (await startOwnRedis());
  const namespace = `c-${randomBytes(5).toString('hex')}`;
  await declareTestFleet(redisServer.url, namespace);
  const sealKey = randomBytes(32).toString('base64');
  const fleets: Fleet[] = [];
  const closing: (() => Promise<unknown>)[] = [];
  return {
    own: redisServer,
    redis: redisServer.redis,
    namespace,
    keyspace: keyspaceOf(namespace),
    sealKey,
    async connect(options = {}) {
      const fleet = await Fleet.connect({ redisUrl: redisServer.url, namespace, sealKeys: [sealKey], ...options });
      fleets.push(fleet);
      return fleet;
    },
    async startHost({ id = 'host-1', slots = 100, env = {} } = {}) {
      const began: StageHost['began'] = [];
      const runScript =
        (session: string): RunScript =>
        (start, keeper) => {
          began.push({ session, script: String(start.script) });
          return runInSh(start, keeper);
        };
      const { worker } = await startFakeShellWorker({
        ...{ redisUrl: redisServer.url, namespace, sealKey, id, slots, env, runScript },
      });
      let left = false;
      closing.push(async () => !left && worker.close('end', 0));
      const leave = async () => {
        left = true;
        await worker.close('hand-over', 0);
      };
      return { id, began, leave };
    },
    keys: async () => (await redisServer.redis.keys(`${keyspaceOf(namespace)}:*`)).sort(),
    async [Symbol.asyncDispose]() {
      await Promise.allSettled(fleets.map((fleet) => fleet.close()));
      // Closes everything even if one close fails, so that a failed test leaves no server behind.
      await Promise.allSettled(closing.map((close) => close()));
      if (own === undefined) await redisServer[Symbol.asyncDispose]();
    },
  };
}
