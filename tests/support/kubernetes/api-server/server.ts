import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Access, ANONYMOUS, pathRefusal, refusal, type User } from './access.ts';
import type { Surroundings } from './admission.ts';
import type { Certificates } from './certificates.ts';
import { startControllers } from './controllers.ts';
import { deleteObject } from './deletion.ts';
import { discover } from './discovery.ts';
import { type Fault, Faults, type Filter, type SeenRequest } from './faults.ts';
import { Listing } from './listing.ts';
import { answer } from './objects.ts';
import { type ObjectRequest, parseRequest, readBody } from './requests.ts';
import { RESOURCES } from './resources.ts';
import { ApiFailure, internalError, unauthorized, unknownPath } from './status.ts';
import { Store } from './store.ts';
import { Watches, type WatchOptions } from './watching.ts';

export interface ApiServerOptions extends Partial<WatchOptions> {
  certificates: Certificates;
  /** Address to listen on. */
  host: string;
}

/** API server of the tests. Its README says what it is not. */
export class ApiServer {
  readonly store = new Store();
  readonly access = new Access();
  readonly surroundings: Surroundings = {
    serviceAccounts: new Set(),
    priorityClasses: new Map(),
    runtimeClasses: new Set(),
    restricted: true,
  };
  /** Requests that the server has seen, in the order in which they arrived. */
  readonly requests: SeenRequest[] = [];
  readonly #faults = new Faults();
  readonly #listing = new Listing(this.store);
  readonly #watches: Watches;
  readonly #server: Server;
  readonly #host: string;
  #port = 0;

  private constructor({ certificates, host, bookmarkEveryMs = 60_000, expiredAs = 'event' }: ApiServerOptions) {
    const { key, cert } = certificates;
    this.#host = host;
    this.#watches = new Watches(this.store, { bookmarkEveryMs, expiredAs });
    this.#server = createServer({ key, cert }, (request, response) => void this.#serve(request, response));
    // The real server closes connections that are idle for that long. Node's own time is 5 s.
    this.#server.keepAliveTimeout = 90_000;
    this.#server.on('clientError', (_error, socket) => socket.destroy());
    startControllers(this.store);
  }

  static async start(options: ApiServerOptions): Promise<ApiServer> {
    const server = new ApiServer(options);
    await server.resume();
    return server;
  }

  get url(): string {
    return `https://${this.#host}:${this.#port}`;
  }

  /** Number of watches that are open. */
  get watchCount(): number {
    return this.#watches.count;
  }

  /** Makes a namespace. */
  addNamespace(name: string): void {
    const metadata = { name, labels: { 'kubernetes.io/metadata.name': name } };
    const spec = { finalizers: ['kubernetes'] };
    this.store.create('namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata,
      spec,
      status: { phase: 'Active' },
    });
  }

  /** Makes a quota, or replaces what it allows. */
  setQuota(namespace: string, name: string, hard: Record<string, string>): void {
    const made = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name, namespace }, spec: { hard }, status: {} };
    if (!this.store.create('resourcequotas', made))
      this.store.update('resourcequotas', namespace, name, (quota) => ({ ...quota, spec: { hard } }));
  }

  /** Deletes a Pod with its own grace, as a controller does. */
  deletePod(namespace: string, name: string): void {
    const type = RESOURCES.find(({ resource }) => resource === 'pods');
    if (type) deleteObject(this.store, type, namespace, name, {});
  }

  /** Answers the next requests that pass the filter by a fault. */
  failNext(count: number, fault: Fault, filter: Filter = () => true): void {
    this.#faults.order(count, fault, filter);
  }

  /** Delays every request from now on. */
  delay(delayMs: number): void {
    this.#faults.delayMs = delayMs;
  }

  /** Withdraws every fault and delay. */
  clearFaults(): void {
    this.#faults.clear();
  }

  /** Breaks the connections of all watches. */
  cutWatches(): void {
    this.#watches.cut();
  }

  /** Ends all watches as the server does after their time-out. */
  endWatches(): void {
    this.#watches.end();
  }

  /** Sends a bookmark to all watches that allow it. */
  bookmark(): void {
    this.#watches.bookmark();
  }

  /** Forgets the history: watches from earlier revisions, and lists that are read in parts, expire. */
  compact(): void {
    this.store.compact();
  }

  /** Closes the port and every connection, as a control plane that goes away. The objects stay. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  /** Listens on the port that the server had before {@link stop}. */
  async resume(): Promise<void> {
    this.#server.listen(this.#port, this.#host);
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client may go away at any time.
    request.on('error', () => {});
    response.on('error', () => {});
    const url = new URL(request.url ?? '/', this.url);
    const asked = parseRequest(request.method ?? 'GET', url);
    const user = this.access.userOf(request.headers.authorization);
    const seen = this.#note(request, asked, user ?? ANONYMOUS);
    try {
      if (await this.#faults.meet(seen, response)) return;
      if (!user) throw unauthorized();
      await this.#answer({ request, response, url, asked, user });
    } catch (error) {
      const { body } = error instanceof ApiFailure ? error : internalError(String((error as Error).stack));
      if (!response.headersSent) reply(response, body.code, body);
    } finally {
      seen.code = response.headersSent ? response.statusCode : undefined;
    }
  }

  #note(
    { method = 'GET', url: path = '/' }: IncomingMessage,
    asked: ObjectRequest | undefined,
    user: User,
  ): SeenRequest {
    const seen = {
      verb: asked?.verb ?? method.toLowerCase(),
      method,
      path,
      resource: asked ? withSubresource(asked) : '',
      namespace: asked?.namespace,
      name: asked?.name ?? '',
      user: user.name,
    };
    this.requests.push(seen);
    return seen;
  }

  async #answer({ request, response, url, asked, user }: Exchange): Promise<void> {
    if (!asked) {
      const refused = pathRefusal(user, (request.method ?? 'GET').toLowerCase(), url.pathname);
      if (refused) throw refused;
      const body = discover(url.pathname);
      if (body === undefined) throw unknownPath();
      return reply(response, 200, body);
    }
    const kind = asked.type?.kind ?? '';
    const refused = refusal(user, { ...asked, resource: withSubresource(asked), kind });
    if (refused) throw refused;
    const { type, verb, namespace } = asked;
    const query = url.searchParams;
    if (verb === 'watch' && type) return this.#watches.open({ type, namespace, query }, response);
    const contentType = request.headers['content-type'] ?? 'application/json';
    const call = { request: asked, query, contentType, body: await readBody(request) };
    const { code, body } = answer(call, { store: this.store, listing: this.#listing, surroundings: this.surroundings });
    reply(response, code, body);
  }
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  url: URL;
  asked: ObjectRequest | undefined;
  user: User;
}

const withSubresource = ({ resource, subresource }: ObjectRequest) =>
  subresource === undefined ? resource : `${resource}/${subresource}`;

function reply(response: ServerResponse, code: number, body: object | string): void {
  const isText = typeof body === 'string';
  const type = isText ? 'text/plain; charset=utf-8' : 'application/json';
  const headers = { 'content-type': type, 'cache-control': 'no-cache, private' };
  const retryAfter = isText
    ? undefined
    : (body as { details?: { retryAfterSeconds?: number } }).details?.retryAfterSeconds;
  const withRetry =
    code >= 400 && retryAfter !== undefined ? { ...headers, 'retry-after': String(retryAfter) } : headers;
  response.writeHead(code, withRetry).end(isText ? body : `${JSON.stringify(body)}\n`);
}
