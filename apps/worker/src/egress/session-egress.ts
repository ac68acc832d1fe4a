import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { NetworkAccess } from '@shellfleet/protocol';
import { connectOut, type OutwardRules } from './connect-out.ts';
import type { Destination, ProxyRefusal } from './destination.ts';
import { isProxyRefusal } from './destination.ts';
import { createEgressServer } from './egress-server.ts';

// The proxy of one session whose network is limited: what may use it, and for how long.
//
// EGRESS-1. A connection belongs to what runs when it is opened (a command, or the terminals) and ends with that.
// EGRESS-2. While nothing runs, nothing passes. A background process has a network only during a command or a terminal.
// EGRESS-3. While a command runs whose network is restricted, nothing passes, for any process in the sandbox.

const NOTHING_RUNS: ProxyRefusal = { status: 403, reason: 'no command runs in this session and no terminal is open' };
const RESTRICTED: ProxyRefusal = { status: 403, reason: 'the command that runs has no network' };

export interface EgressEvent {
  name: string;
  port: number;
  /** Reason of a refusal; undefined when the request was passed on. */
  refusal?: string;
}

export type RefusedEgress = EgressEvent & { refusal: string };

export interface SessionEgressDeps {
  rules: OutwardRules;
  onRequest(event: EgressEvent): void;
  headWithinMs?: number;
}

/** A command or the terminals, while they run. Their connections end with them. */
class NetworkUse {
  readonly #connections = new Set<Socket>();
  readonly #ended = new AbortController();
  readonly network: NetworkAccess;

  constructor(network: NetworkAccess) {
    this.network = network;
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  add(connection: Socket): void {
    if (this.signal.aborted) connection.destroy();
    this.#connections.add(connection);
    connection.once('close', () => this.#connections.delete(connection));
  }

  end(): void {
    this.#ended.abort();
    for (const connection of this.#connections) connection.destroy();
  }
}

export class SessionEgress {
  readonly #deps: SessionEgressDeps;
  readonly #uses = new WeakMap<Socket, NetworkUse>();
  #server: Server | undefined;
  #command: NetworkUse | undefined;
  #terminals: NetworkUse | undefined;

  constructor(deps: SessionEgressDeps) {
    this.#deps = deps;
  }

  /** Listens where the sandbox looks for its proxy, also if an earlier worker has listened there. */
  async listen(path: string): Promise<void> {
    this.close();
    await rm(path, { force: true });
    const { headWithinMs } = this.#deps;
    const server = createEgressServer((destination, client) => this.#open(destination, client), { headWithinMs });
    server.on('connection', (client) => this.#admit(client));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
    server.on('error', () => {});
    // The sandbox has another user than the worker. Only that user sees the directory of the socket.
    await chmod(path, 0o666);
  }

  /** Registers that something runs in the session, with its network, until the returned function is called. */
  begin(network: NetworkAccess): () => void {
    this.#command?.end();
    const use = new NetworkUse(network);
    this.#command = use;
    // EGRESS-3: a connection cannot be attributed to one process of the sandbox.
    if (network === 'restricted' && this.#terminals !== undefined) {
      this.#terminals.end();
      this.#terminals = new NetworkUse('limited');
    }
    return () => {
      use.end();
      if (this.#command === use) this.#command = undefined;
    };
  }

  /** Takes the number of open terminals after each change. */
  setTerminals(count: number): void {
    if (count > 0) this.#terminals ??= new NetworkUse('limited');
    else {
      this.#terminals?.end();
      this.#terminals = undefined;
    }
  }

  close(): void {
    this.#command?.end();
    this.setTerminals(0);
    this.#server?.close();
    this.#server?.closeAllConnections();
    this.#server = undefined;
  }

  #admit(client: Socket): void {
    const use = this.#command ?? this.#terminals;
    if (use === undefined) return;
    this.#uses.set(client, use);
    use.add(client);
  }

  async #open(destination: Destination, client: Socket): Promise<Socket | ProxyRefusal> {
    const opened = await this.#openFor(this.#uses.get(client), destination, client);
    const refusal = isProxyRefusal(opened) ? { refusal: opened.reason } : {};
    this.#deps.onRequest({ ...destination, ...refusal });
    return opened;
  }

  async #openFor(
    use: NetworkUse | undefined,
    destination: Destination,
    client: Socket,
  ): Promise<Socket | ProxyRefusal> {
    if (use === undefined) return NOTHING_RUNS;
    if ((this.#command ?? use).network === 'restricted') return RESTRICTED;
    const outward = await connectOut(destination, this.#deps.rules, use.signal);
    if (isProxyRefusal(outward)) return outward;
    use.add(outward);
    if (client.destroyed) outward.destroy();
    return outward;
  }
}
