import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { ATTRIBUTES } from '@shellfleet/protocol';
import { type EgressStatement, verifyEgress } from '@shellfleet/sealing';
import type { Logger } from '../log/logger.ts';
import { connectOut, type OutwardRules } from './connect-out.ts';
import { type Destination, isProxyRefusal, type ProxyRefusal } from './destination.ts';
import { createEgressLog } from './egress-log.ts';
import { CONNECTIONS, createEgressServer } from './egress-server.ts';
import { createResolveName, type LimitLookups, limitLookups, type ResolveName } from './resolve-name.ts';

// The proxy of all Pods of a fleet whose network is limited. It has no connection to Redis and knows no session: each
// request carries a token that says what its session may reach.
//
// EGRESS-POD-1. Without a token that a seal key of the fleet signed and that has not expired, nothing passes.
// EGRESS-POD-2. What the operator lists holds beside the token, and may have become shorter since that was signed.
// EGRESS-POD-3. A session, a tenant, and a peer that has shown no token have a bounded number of connections, so none
//     of them takes those of the others.

/** Most connections at a time. Each may hold 64 KiB: all fit into the 256 MiB that the chart gives the proxy. */
const ALL_CONNECTIONS = 2_048;
/** Most connections of one tenant. */
const TENANT_CONNECTIONS = ALL_CONNECTIONS / 4;
/** Time for which a session without a connection is remembered: as long as a period of its log. */
const FORGET_MS = 60_000;

const NO_TOKEN: ProxyRefusal = { status: 407, reason: 'the request has no valid token of a session' };
const TOO_MANY: ProxyRefusal = { status: 403, reason: `its session has ${CONNECTIONS} connections already` };
const TOO_MANY_OF_TENANT: ProxyRefusal = {
  status: 403,
  reason: `its tenant has ${TENANT_CONNECTIONS} connections already`,
};

export interface EgressProxyOptions {
  /** Keys of tokens, one of each seal key of the fleet. */
  keys: readonly Buffer[];
  /** The operator's hosts and addresses. */
  rules: Pick<OutwardRules, 'hosts' | 'mayConnectTo'>;
  logger: Logger;
  /** Most names that are resolved at a time, of all sessions. */
  lookups: number;
}

/** A session with connections, or that had some a moment ago. */
interface ProxySession {
  connections: number;
  lastUsedAt: number;
  resolveName: ResolveName;
  log: ReturnType<typeof createEgressLog>;
}

export class EgressProxy {
  readonly #options: EgressProxyOptions;
  readonly #server: Server;
  readonly #sessions = new Map<string, ProxySession>();
  /** Connections of each tenant. */
  readonly #tenants = new Map<string, number>();
  /** Connections of each address that have shown no token yet. */
  readonly #unproven = new Map<string, number>();
  readonly #proven = new WeakSet<Socket>();
  readonly #limitLookups: LimitLookups;
  readonly #sweep: NodeJS.Timeout;

  constructor(options: EgressProxyOptions) {
    this.#options = options;
    this.#limitLookups = limitLookups(options.lookups);
    this.#server = createEgressServer(
      (destination, client, authorization) => this.#open(destination, client, authorization),
      { connections: ALL_CONNECTIONS },
    );
    this.#server.on('connection', (client) => this.#admit(client));
    this.#sweep = setInterval(() => this.#forget(), FORGET_MS).unref();
  }

  /** Listens on the port, 0 for a free one, and returns it. */
  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes no further connection, and ends those that are left after a time. */
  async close(withinMs: number): Promise<void> {
    clearInterval(this.#sweep);
    const timer = setTimeout(() => this.#server.closeAllConnections(), withinMs);
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    clearTimeout(timer);
  }

  /** Bounds the connections of an address that have shown no token (EGRESS-POD-3). */
  #admit(client: Socket): void {
    const address = client.remoteAddress ?? '';
    const count = this.#unproven.get(address) ?? 0;
    if (count >= CONNECTIONS) {
      client.destroy();
      return;
    }
    this.#unproven.set(address, count + 1);
    client.once('close', () => this.#proved(client, address));
  }

  /** Stops to count a connection among those of its address that have shown no token. */
  #proved(client: Socket, address: string): void {
    if (this.#proven.has(client)) return;
    this.#proven.add(client);
    const count = (this.#unproven.get(address) ?? 1) - 1;
    if (count > 0) this.#unproven.set(address, count);
    else this.#unproven.delete(address);
  }

  async #open(
    destination: Destination,
    client: Socket,
    authorization: string | undefined,
  ): Promise<Socket | ProxyRefusal> {
    const statement = verifyEgress(this.#options.keys, tokenOf(authorization));
    if (statement === undefined) return NO_TOKEN;
    this.#proved(client, client.remoteAddress ?? '');
    const session = this.#find(statement);
    const opened = await this.#openFor(session, statement, destination, client);
    session.log({ ...destination, ...(isProxyRefusal(opened) ? { refusal: opened.reason } : {}) });
    return opened;
  }

  async #openFor(
    session: ProxySession,
    { hosts, namespace, tenant }: EgressStatement,
    destination: Destination,
    client: Socket,
  ): Promise<Socket | ProxyRefusal> {
    if (session.connections >= CONNECTIONS) return TOO_MANY;
    const tenantName = JSON.stringify([namespace, tenant]);
    const ofTenant = this.#tenants.get(tenantName) ?? 0;
    if (ofTenant >= TENANT_CONNECTIONS) return TOO_MANY_OF_TENANT;
    const gone = new AbortController();
    session.connections += 1;
    this.#tenants.set(tenantName, ofTenant + 1);
    client.once('close', () => {
      session.connections -= 1;
      const left = (this.#tenants.get(tenantName) ?? 1) - 1;
      if (left > 0) this.#tenants.set(tenantName, left);
      else this.#tenants.delete(tenantName);
      session.lastUsedAt = Date.now();
      gone.abort();
    });
    if (client.destroyed) return { status: 502, reason: 'its client is gone' };
    const { resolveName } = session;
    const outward = await connectOut(
      destination,
      { ...this.#options.rules, allowedHosts: hosts, resolveName },
      gone.signal,
    );
    if (!isProxyRefusal(outward) && client.destroyed) outward.destroy();
    return outward;
  }

  #find({ namespace, tenant, session: id }: EgressStatement): ProxySession {
    const name = JSON.stringify([namespace, tenant, id]);
    const known = this.#sessions.get(name);
    if (known !== undefined) return known;
    const logger = this.#options.logger.child({ [ATTRIBUTES.tenant]: tenant, [ATTRIBUTES.sessionId]: id });
    const session: ProxySession = {
      connections: 0,
      lastUsedAt: Date.now(),
      resolveName: createResolveName(undefined, this.#limitLookups),
      log: createEgressLog(logger),
    };
    this.#sessions.set(name, session);
    return session;
  }

  #forget(): void {
    for (const [name, { connections, lastUsedAt }] of this.#sessions)
      if (connections === 0 && Date.now() - lastUsedAt > FORGET_MS) this.#sessions.delete(name);
  }
}

/** Returns the password of a header of the scheme Basic, or an empty text. */
function tokenOf(authorization = ''): string {
  const [, encoded = ''] = /^basic ([A-Za-z0-9+/=]+)$/i.exec(authorization) ?? [];
  const text = Buffer.from(encoded, 'base64').toString('latin1');
  return text.slice(text.indexOf(':') + 1);
}
