import { openAccess } from '@shellfleet/access';
import { type ApiServer, createServer } from '@shellfleet/api';
import { type ConnectOptions, Fleet, type Scope } from '@shellfleet/client';
import { pino } from 'pino';
import { ApiCaller } from './api-caller.ts';

export interface ServedApi extends AsyncDisposable {
  readonly server: ApiServer;
  readonly url: string;
  /** Makes a key, and returns a caller that presents it. */
  caller(scopes?: Scope[], tenant?: string): Promise<ApiCaller>;
  /** Returns a caller that presents the key of another one to this server. */
  withKeyOf(other: ApiCaller): ApiCaller;
}

/** Serves a fleet over HTTP from this process. */
export async function serveApi(place: Pick<ConnectOptions, 'redisUrl' | 'namespace' | 'sealKeys'>): Promise<ServedApi> {
  const fleet = await Fleet.connect(place);
  const log = pino({ level: 'silent' });
  const server = await createServer({
    ...{ fleet, log, version: '0.0.0', access: openAccess(fleet, { log }) },
    connect: (identity) => Fleet.connect({ ...place, ...identity }),
    config: { tls: undefined, host: '127.0.0.1', allowedHosts: [], corsOrigins: [], rateLimit: 10_000 },
  });
  const url = `http://127.0.0.1:${await server.listen(0)}`;
  return {
    ...{ server, url },
    async caller(scopes = ['submit', 'read', 'approve', 'admin'], tenant = 'default') {
      const { key } = await fleet.keys.create({ name: 'test', scopes, tenant });
      return new ApiCaller(url, key);
    },
    withKeyOf: ({ key }) => new ApiCaller(url, key),
    async [Symbol.asyncDispose]() {
      await server.close();
      await fleet.close();
    },
  };
}
