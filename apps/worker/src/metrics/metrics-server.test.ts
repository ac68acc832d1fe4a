import { connect } from 'node:net';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { ConfigError } from '../config/config.ts';
import { type MetricsServer, serveMetrics, type Watched } from './metrics-server.ts';

const TOKEN = 'token-of-the-autoscaler';
let server: MetricsServer | undefined;
let log = '';
afterEach(async () => {
  await server?.close();
  server = undefined;
  log = '';
});

async function serve(watched: Partial<Watched> = {}, scaleToken: string | undefined = TOKEN, host = '127.0.0.1') {
  const all: Watched = {
    metrics: async () => 'shellfleet_ready 1\n',
    contentType: 'text/plain; version=0.0.4',
    reasons: () => [],
    scale: async () => ({ demand: 3 }),
    ...watched,
  };
  const logger = pino(
    { level: 'trace' },
    {
      write: (line) => {
        log += line;
      },
    },
  );
  server = await serveMetrics({ port: 0, host, scaleToken }, all, logger);
}

async function ask(path: string, init?: RequestInit) {
  const response = await fetch(`http://127.0.0.1:${server?.port}${path}`, init);
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') };
}
const withToken = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

describe('the port of a worker', () => {
  test('answers with metrics, with its readiness, and that it is alive', async () => {
    await serve();
    expect(await ask('/metrics')).toEqual({
      status: 200,
      text: 'shellfleet_ready 1\n',
      type: 'text/plain; version=0.0.4',
    });
    expect(await ask('/healthz')).toMatchObject({ status: 200, text: 'alive\n' });
    expect(await ask('/readyz?verbose')).toMatchObject({ status: 200, text: 'ready\n' });
  });

  test('says with 503 why the worker takes no session', async () => {
    await serve({ reasons: () => ['It drains.', 'Its disk is full.'] });
    expect(await ask('/readyz')).toMatchObject({ status: 503, text: 'It drains.\nIts disk is full.\n' });
    expect(await ask('/healthz')).toMatchObject({ status: 200 });
  });

  test('gives the demand only to those with the token, which no log has', async () => {
    await serve();
    expect(await ask('/scale')).toMatchObject({ status: 401 });
    expect(await ask('/scale', withToken(`${TOKEN}x`))).toMatchObject({ status: 401 });
    expect(await ask('/scale', { headers: { authorization: TOKEN } })).toMatchObject({ status: 401 });
    const allowed = await ask('/scale', withToken(TOKEN));
    expect(allowed).toEqual({ status: 200, text: '{"demand":3}\n', type: 'application/json' });
    expect(log).toContain('metrics.listening');
    expect(log).not.toContain(TOKEN);
  });

  test('gives the demand to nobody without a token', async () => {
    await serve({}, '');
    expect(await ask('/scale', withToken(''))).toMatchObject({ status: 403 });
  });

  test('reports an unknown demand as an error, because zero would end hosts', async () => {
    await serve({ scale: async () => undefined });
    expect(await ask('/scale', withToken(TOKEN))).toMatchObject({ status: 503 });
  });

  test('answers with an error when reading fails, and logs the reason', async () => {
    await serve({ metrics: () => Promise.reject(new Error('planted')) });
    expect(await ask('/metrics')).toMatchObject({ status: 503, text: expect.not.stringContaining('planted') });
    expect(log).toContain('planted');
  });

  test('reads the metrics once for requests that come together', async () => {
    const [reading, third] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
    let reads = 0;
    await serve({
      metrics: () => {
        reads += 1;
        return reading.promise;
      },
      reasons: () => {
        third.resolve();
        return [];
      },
    });
    // The server receives the requests of one connection in order.
    const client = connect(server?.port ?? 0, '127.0.0.1');
    const paths = ['/metrics', '/metrics', '/readyz'];
    client.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`).join(''));
    await third.promise;
    expect(reads).toBe(1);
    client.destroy();
    reading.resolve('text');
    await ask('/healthz');
    await ask('/metrics');
    expect(reads).toBe(2);
  });

  test.each(['127.0.0.1', '[::1]'])('answers at %s when its address is ::', async (host) => {
    await serve({}, TOKEN, '::');
    const response = await fetch(`http://${host}:${server?.port}/healthz`);
    expect(await response.text()).toBe('alive\n');
  });

  test('refuses other methods and paths', async () => {
    await serve();
    expect(await ask('/metrics', { method: 'POST', body: 'x' })).toMatchObject({ status: 405 });
    expect(await ask('/metrics', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    expect(await ask('/')).toMatchObject({ status: 404 });
  });

  test('is a wrong setting when another process has it', async () => {
    await serve();
    const taken = { port: server?.port ?? 0, host: '127.0.0.1', scaleToken: undefined };
    const watched = {} as Watched;
    const started = serveMetrics(taken, watched, pino({ level: 'silent' }));
    await expect(started).rejects.toThrow(ConfigError);
    await expect(started).rejects.toThrow(/SHELLFLEET_METRICS_PORT: cannot listen on port \d+ of 127.0.0.1/);
  });
});
