import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SESSION_IMAGES } from '@shellfleet/policy';
import type { Machine } from '@shellfleet/setup';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeFullImage } from './full-image.ts';

// The server replies like an engine that has the public image `slim` and builds `full` from it.

const begins = expect.stringContaining(
  'is made behind the fleet. Until it is there, sessions that name no image get slim.',
);

let directory: string;
let engine: Server;
let images: string[];
let build: (() => { error?: string } | undefined) | undefined;
let lines: string[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'full-image-'));
  images = ['node:24-bookworm'];
  lines = [];
  build = () => ({});
  engine = createServer(async (request, response) => {
    const url = decodeURIComponent(request.url ?? '');
    try {
      for await (const _ of request);
    } catch {
      return; // the client gave up while it sent the build's context
    }
    const reply = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
    };
    if (url.includes('/build?')) {
      const answer = build?.();
      if (answer === undefined) return; // no reply yet: the build goes on
      if (answer.error === undefined) images.push(/[?&]t=([^&]+)/.exec(url)?.[1] ?? '');
      return reply(200, answer);
    }
    if (request.method === 'POST') return reply(201, {}); // the request adds a tag
    return images.some((image) => url.includes(`/images/${image}/`)) ? reply(200, { Id: 'a' }) : reply(404, {});
  });
  await once(engine.listen(0, '127.0.0.1'), 'listening');
});
afterEach(async () => {
  engine.closeAllConnections();
  engine.close();
  await rm(directory, { recursive: true });
});

function start(env: NodeJS.ProcessEnv = {}): () => Promise<void> {
  const { port } = engine.address() as AddressInfo;
  const endpoint = { dockerHost: `tcp://127.0.0.1:${port}`, host: '127.0.0.1', port };
  const machine: Machine = {
    engine: { endpoint, version: '1', startedHere: false },
    sessionImage: 'slim',
    imageNames: SESSION_IMAGES,
  };
  return makeFullImage(machine, { env: { ...env, XDG_STATE_HOME: directory }, report: (line) => lines.push(line) });
}

describe('the full image', () => {
  test('is reported by `up` during and after its making, but not if it exists already', async () => {
    start();
    await expect.poll(() => lines.at(-1)).toMatch(/get it from now on/);
    expect(lines[0]).toEqual(begins);
    lines = [];
    await start()();
    expect(lines).toEqual([]);
  });

  test('is reported with its replacement when it cannot be made', async () => {
    build = () => ({ error: 'no space left on device' });
    start();
    await expect
      .poll(() => lines.at(-1))
      .toBe(`The session image full could not be made: no space left on device
Sessions that name no image get slim. The next start tries again.`);
  });

  test('is silently given up when the fleet ends', async () => {
    build = () => undefined;
    const stop = start();
    await expect.poll(() => lines.length).toBe(2);
    await stop();
    expect([lines[0], images]).toEqual([begins, ['node:24-bookworm']]);
    expect(lines).toHaveLength(2);
  });

  test('is not made with another default image', async () => {
    await start({ SHELLFLEET_DEFAULT_IMAGE: 'slim' })();
    expect(lines).toEqual([]);
  });
});
