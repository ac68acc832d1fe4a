import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { createDockerSandboxes, type Sandboxes } from '@shellfleet/worker';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type EngineProxy, startEngineProxy } from '../support/engine-proxy.ts';
import { keyspaceOf } from '../support/keyspace.ts';

const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
const keeperPath = fileURLToPath(new URL('../fixtures/stands-in-for-the-keeper.sh', import.meta.url));
const namespace = keyspaceOf(`test-homes-${process.pid}`);
const { busybox } = inject('testImages');
const withHome = `shellfleet-test/home:${process.pid}`;
let directory: string;
let proxy: EngineProxy;
let sandboxes: Sandboxes;
let asked: string[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'homes-'));
  proxy = await startEngineProxy();
  proxy.silence = (request) => {
    if (request.includes('/archive?')) asked.push(request.startsWith('PUT') ? 'copies' : 'looks');
    return false;
  };
  sandboxes = await createDockerSandboxes({
    namespace,
    hostId: 'one',
    hostKey: Buffer.alloc(32, 7),
    directory: join(directory, 'one'),
    keeperPath,
    transport: 'socket',
    socketPath: proxy.socketPath,
    allowances: {
      images: 'any',
      defaultImage: busybox,
      users: ['root'],
      workspaces: [],
      bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
    },
  });
});
afterAll(async () => {
  await Promise.all((await sandboxes.list()).map(({ sandbox }) => sandbox.remove()));
  await sandboxes.close();
  await proxy[Symbol.asyncDispose]();
  await docker
    .getImage(withHome)
    .remove({ force: true })
    .catch(() => {});
  await rm(directory, { recursive: true });
});

/** Creates a sandbox, and returns the owner and mode of its home, and which calls about files the engine got. */
async function create(spec: SessionSpec) {
  asked = [];
  const sandbox = await sandboxes.create({ namespace, tenant: 'acme', session: 's' }, sessionSpecSchema.parse(spec));
  const container = docker.getContainer(String(sandbox.containerId));
  return { container, made: { home: await describeHome(container), asked } };
}

/** Returns mode and owner of the home, from the header of its archive: mode at 100, uid at 108, gid at 116. */
async function describeHome(container: Docker.Container): Promise<string> {
  const header = (await buffer(await container.getArchive({ path: '/workspace' }))).toString('latin1', 0, 512);
  const number = (at: number) => Number.parseInt(header.slice(at, at + 7), 8);
  return `${number(100).toString(8)} ${number(108)}:${number(116)}`;
}

describe('the home of a session', () => {
  test('is copied into each container whose image lacks it, also for root', async () => {
    const home = '40755 1000:1000';
    expect((await create({})).made).toEqual({ home, asked: ['looks', 'copies'] });
    expect((await create({})).made).toEqual({ home, asked: ['copies'] });
    const ofRoot = await create({ user: 'root', cwd: '/etc' });
    expect(ofRoot.made).toEqual({ home: '40755 0:0', asked: ['copies'] });
  });

  test('is not copied if the image has it for the user of the session', async () => {
    const { container } = await create({});
    const [repo, tag] = withHome.split(':');
    await container.commit({ repo, tag });
    const home = '40755 1000:1000';
    expect((await create({ image: withHome })).made).toEqual({ home, asked: ['looks'] });
    expect((await create({ image: withHome })).made).toEqual({ home, asked: [] });
    const ofAnother = await create({ image: withHome, user: '1001' });
    expect(ofAnother.made).toEqual({ home: '40755 1001:1001', asked: ['copies'] });
  });
});
