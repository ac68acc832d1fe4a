import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { inject } from 'vitest';

/** A proxy in front of the Docker engine of the test run. Tests can make the proxy misbehave. */
export interface EngineProxy extends AsyncDisposable {
  readonly socketPath: string;
  /** Returns true for a request (`<method> <path>`) that is never passed on and never answered. */
  silence?: (request: string) => boolean;
  /** Returns the answer to a request that is refused and never passed on. */
  refuse?: (request: string) => { statusCode: number; message: string } | undefined;
  /** An image that the engine seems to lack. */
  missingImage?: string | undefined;
  /** Replaces the registries: every pull completes when the promise of this function resolves. */
  pull?: (() => Promise<void>) | undefined;
  /** Replaces the body of an answer. */
  rewrite?: (request: string, body: string) => string;
  /** Ends every connection and accepts no more, like an engine that has stopped. */
  cut(): Promise<void>;
  /** Accepts connections again. */
  mend(): Promise<void>;
}

export async function startEngineProxy(): Promise<EngineProxy> {
  const engine = inject('dockerHost').replace('unix://', '');
  const directory = await mkdtemp(join(tmpdir(), 'engine-'));
  const upgraded = new Set<Duplex>();
  const proxy: EngineProxy = {
    socketPath: join(directory, 'docker.sock'),
    async cut() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      await closed;
    },
    mend: () => new Promise<void>((resolve) => server.listen(proxy.socketPath, resolve)),
    async [Symbol.asyncDispose]() {
      if (server.listening) await proxy.cut();
      await rm(directory, { recursive: true, force: true });
    },
  };
  const missing = (request: string) => {
    const { missingImage } = proxy;
    if (missingImage === undefined || !decodeURIComponent(request).endsWith(`/images/${missingImage}/json`)) return;
    return { statusCode: 404, message: `No such image: ${missingImage}` };
  };
  const server = createServer(async (asked, answer) => {
    const what = `${asked.method} ${asked.url}`;
    if (proxy.silence?.(what)) {
      asked.resume();
      return;
    }
    const refusal = proxy.refuse?.(what) ?? missing(what);
    if (refusal !== undefined) {
      asked.resume();
      answer.writeHead(refusal.statusCode, { 'content-type': 'application/json' });
      answer.end(JSON.stringify({ message: refusal.message }));
      return;
    }
    if (proxy.pull !== undefined && /^POST .*\/images\/create\b/.test(what)) {
      asked.resume();
      answer.writeHead(200, { 'content-type': 'application/json' });
      answer.write('{"status":"Pulling"}\n');
      await proxy.pull();
      answer.end('{"status":"Pull complete"}\n');
      return;
    }
    const forwarded = request(
      { socketPath: engine, method: asked.method, path: asked.url, headers: asked.headers },
      (reply) => {
        void relay(reply, answer, proxy.rewrite && ((body) => proxy.rewrite?.(what, body) ?? body));
      },
    );
    forwarded.on('error', () => answer.destroy());
    answer.on('close', () => forwarded.destroy());
    asked.pipe(forwarded);
  });
  server.on('upgrade', (asked, socket) => {
    const up = connect(engine);
    const headers = Object.entries(asked.headers).map(([name, value]) => `${name}: ${value}`);
    up.write(`${asked.method} ${asked.url} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
    up.on('error', () => socket.destroy());
    socket.on('error', () => up.destroy());
    upgraded.add(socket);
    socket.on('close', () => {
      upgraded.delete(socket);
      up.destroy();
    });
    up.pipe(socket);
    socket.pipe(up);
  });
  await proxy.mend();
  return proxy;
}

async function relay(
  reply: IncomingMessage,
  answer: ServerResponse,
  rewrite: ((body: string) => string) | undefined,
): Promise<void> {
  const isJson = reply.headers['content-type']?.includes('json') === true;
  if (rewrite === undefined || !isJson || reply.headers['transfer-encoding'] !== undefined) {
    answer.writeHead(reply.statusCode ?? 500, reply.headers);
    answer.flushHeaders();
    reply.on('error', () => answer.destroy());
    reply.pipe(answer);
    return;
  }
  let body = '';
  for await (const chunk of reply) body += String(chunk);
  body = rewrite(body);
  answer.writeHead(reply.statusCode ?? 500, { ...reply.headers, 'content-length': Buffer.byteLength(body) });
  answer.end(body);
}
