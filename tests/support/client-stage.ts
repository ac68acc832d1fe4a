import { randomBytes } from 'node:crypto';
import { type ConnectOptions, Fleet } from '@shellfleet/client';
import type { Redis } from 'ioredis';
import { declareTestFleet, keyspaceOf } from './keyspace.ts';
import { type MailboxHost, type MailboxHostOptions, startMailboxHost } from './mailbox-host/mailbox-host.ts';
import { type OwnRedis, startOwnRedis } from './own-redis.ts';

/** A Redis of its own for tests of the client, with producers and minimal hosts. Each test has a namespace of its own. */
export interface ClientStage extends AsyncDisposable {
  own: OwnRedis;
  redis: Redis;
  namespace: string;
  /** Of its keys and channels. */
  keyspace: string;
  sealKey: string;
  connect(options?: ConnectOptions): Promise<Fleet>;
  startHost(options?: Partial<MailboxHostOptions>): Promise<MailboxHost>;
  /** Every key of the namespace. */
  keys(): Promise<string[]>;
}

/** `own`: a Redis that several stages share. */
export async function setClientStage(own?: OwnRedis): Promise<ClientStage> {
  const redisServer = own ?? (await startOwnRedis());
  const namespace = `c-${randomBytes(5).toString('hex')}`;
  await declareTestFleet(redisServer.url, namespace);
  const sealKey = randomBytes(32).toString('base64');
  const fleets: Fleet[] = [];
  const hosts: MailboxHost[] = [];
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
    async startHost(options = {}) {
      const host = await startMailboxHost({ redisUrl: redisServer.url, namespace, sealKey, ...options });
      hosts.push(host);
      return host;
    },
    keys: async () => (await redisServer.redis.keys(`${keyspaceOf(namespace)}:*`)).sort(),
    async [Symbol.asyncDispose]() {
      await Promise.allSettled(fleets.map((fleet) => fleet.close()));
      // A test that failed leaves no server behind.
      await Promise.allSettled(hosts.map((host) => host[Symbol.asyncDispose]()));
      if (own === undefined) await redisServer[Symbol.asyncDispose]();
    },
  };
}
