import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { readEngineVersion } from '../docker-client.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { hasImage, importImage, pullImage } from './image-store.ts';

// The server replies like an engine.

let stop = (): void => {};
afterEach(() => stop());

async function engine(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<DockerEndpoint> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  stop = () => void server.close().closeAllConnections();
  const { port } = server.address() as AddressInfo;
  return { dockerHost: `tcp://127.0.0.1:${port}`, host: '127.0.0.1', port };
}

const json =
  (status: number, ...events: unknown[]) =>
  async (request: IncomingMessage, response: ServerResponse) => {
    for await (const _ of request);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  };

describe('the store of images', () => {
  test('reads the version of an engine, and none where there is no engine', async () => {
    expect(await readEngineVersion(await engine(json(200, { Version: '27.1' })))).toBe('27.1');
    expect(await readEngineVersion({ dockerHost: 'unix:///nonexistent', socketPath: '/nonexistent' })).toBeUndefined();
  });

  test('reports an image as present or absent, and anything else as an error', async () => {
    expect(await hasImage(await engine(json(200, { Id: 'a' })), 'a:1')).toBe(true);
    stop();
    expect(await hasImage(await engine(json(404, { message: 'no such image' })), 'a:1')).toBe(false);
    stop();
    await expect(hasImage(await engine(json(500, { message: 'broken' })), 'a:1')).rejects.toThrow('broken');
  });

  test('rejects with an error that the engine reports after status 200', async () => {
    const endpoint = await engine(
      json(200, { status: 'Pulling' }, { errorDetail: { message: 'm' }, error: 'no route' }),
    );
    await expect(pullImage(endpoint, 'a:1', { silenceMs: 1_000 })).rejects.toThrow('no route');
    stop();
    await pullImage(await engine(json(200, { status: 'Pulled' })), 'a:1', { silenceMs: 1_000 });
  });

  test('gives up a registry that sends nothing', async () => {
    await expect(pullImage(await engine(() => {}), 'a:1', { silenceMs: 100 })).rejects.toThrow();
    stop();
    const silent = await engine((_request, response) => void response.writeHead(200).write('{"status":"Pulling"}\n'));
    await expect(pullImage(silent, 'a:1', { silenceMs: 100 })).rejects.toThrow();
  });

  test('fails an import with the error of its root file system', async () => {
    const broken = new PassThrough();
    const endpoint = await engine((request) => {
      request.once('data', () => broken.destroy(new Error('tar failed')));
    });
    broken.write('some bytes');
    await expect(importImage(endpoint, 'a:1', broken, [])).rejects.toThrow('tar failed');
    stop();
    await importImage(await engine(json(200, { status: 'sha256:a' })), 'a:1', Readable.from(['tar']), ['CMD ["sh"]']);
  });
});
