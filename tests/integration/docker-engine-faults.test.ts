import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SESSION_IMAGES } from '@shellfleet/policy';
import { parseKeyspace, sessionSpecSchema } from '@shellfleet/protocol';
import { createDockerSandboxes, MissingImage, type Sandboxes } from '@shellfleet/worker';
import Docker from 'dockerode';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { type EngineProxy, startEngineProxy } from '../support/engine-proxy.ts';
import { keyspaceOf } from '../support/keyspace.ts';

const keeperPath = fileURLToPath(new URL('../fixtures/stands-in-for-the-keeper.sh', import.meta.url));
const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
const namespace = keyspaceOf(`test-engine-${process.pid}`);
const nobodyGone = async () => false;

let directory: string;
let proxy: EngineProxy;
let sandboxes: Sandboxes;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'engine-'));
  proxy = await startEngineProxy();
  sandboxes = await open('h1');
});
afterEach(async () => {
  proxy.silence = () => false;
  await sandboxes.close();
  for (const id of await containerIds()) await docker.getContainer(id).remove({ force: true });
  await proxy[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

function open(hostId: string, of = namespace, defaultImage = inject('sessionImage')): Promise<Sandboxes> {
  return createDockerSandboxes({
    namespace: of,
    hostId,
    hostKey: Buffer.alloc(32, 7),
    directory: join(directory, hostId),
    keeperPath,
    transport: 'socket',
    socketPath: proxy.socketPath,
    engineTimes: { callTimeoutMs: 2_000, failuresToOpen: 2, probeIntervalMs: 20 },
    allowances: {
      images: 'any',
      defaultImage,
      users: [],
      workspaces: [],
      bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
    },
  });
}

const create = (from = sandboxes, spec = {}, of = namespace) =>
  from.create({ namespace: of, tenant: 'acme', session: 's' }, sessionSpecSchema.parse(spec));

async function containerIds(of = namespace): Promise<string[]> {
  const filters = { label: [`shellfleet.fleet=${parseKeyspace(of).fleetId}`] };
  return (await docker.listContainers({ all: true, filters })).map(({ Id }) => Id);
}

describe('Docker sandboxes during faults of the engine', () => {
  test.each([
    'Your kernel does not support pids limit capabilities. PIDs limit discarded.',
    'Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap.',
  ])('refuse a limit that the engine ignores or weakens, and remove the container: %s', async (warning) => {
    proxy.rewrite = (request, body) =>
      request.includes('/containers/create') ? JSON.stringify({ ...JSON.parse(body), Warnings: [warning] }) : body;
    await expect(create()).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      context: { issues: [{ path: 'limits', message: warning }] },
    });
    expect(await containerIds()).toEqual([]);
  });

  test('end a removal at its deadline, and remove the container in the next sweep', async () => {
    const stuck = await create();
    const living = await create();
    proxy.silence = (request) => request.startsWith('DELETE');
    await expect(stuck.remove()).rejects.toMatchObject({ code: 'DOCKER_UNAVAILABLE' });
    proxy.silence = () => false;
    expect(await sandboxes.sweep(nobodyGone, async () => undefined, 0)).toBe(1);
    expect(await containerIds()).toEqual([living.containerId]);
  });

  test('remove a container that ended as the engine was about to kill it', async () => {
    const ended = await create();
    const id = ended.containerId ?? '';
    const message = `Could not kill running container ${id}, cannot remove - Container ${id} is not running`;
    const refusals = [{ statusCode: 409, message }];
    proxy.refuse = (request) => (request.startsWith('DELETE') ? refusals.pop() : undefined);
    await ended.remove();
    expect([refusals, await containerIds()]).toEqual([[], []]);
  });

  test('fail calls immediately while the engine is silent, and repeat them later', async () => {
    proxy.silence = () => true;
    for (let call = 0; call < 2; call += 1) {
      await expect(sandboxes.check()).rejects.toMatchObject({ code: 'DOCKER_UNAVAILABLE' });
    }
    expect(sandboxes.problem()).toMatch(/^The Docker engine has not answered 2 calls in a row/);
    await expect(create()).rejects.toMatchObject({ code: 'DOCKER_UNAVAILABLE', message: sandboxes.problem() });
    proxy.silence = () => false;
    await expect.poll(() => sandboxes.problem(), { timeout: 20_000 }).toBe(undefined);
    await create();
  });

  test('report a missing image without waiting for its registry', async () => {
    await expect(create(sandboxes, { image: '10.255.255.1/a:1' })).rejects.toThrow(MissingImage);
    expect(await containerIds()).toEqual([]);
  });

  test('use `slim` by default while `full` is missing, but report a requested `full` as missing', async () => {
    await using made = await open('making', namespace, 'full').then(closing);
    proxy.missingImage = SESSION_IMAGES.full;
    const usual = await create(made);
    const { Id: digest } = await docker.getImage(SESSION_IMAGES.slim).inspect();
    const { Image } = await docker.getContainer(usual.containerId ?? '').inspect();
    expect([usual.image, Image]).toEqual([{ name: SESSION_IMAGES.slim, digest }, digest]);
    await expect(create(made, { image: 'full' })).rejects.toMatchObject({ image: SESSION_IMAGES.full });
    await expect(made.pull(SESSION_IMAGES.full)).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      message: expect.stringMatching(/session:full is not on this host, and is in no registry/),
    });
  });

  const closing = (opened: Sandboxes) => Object.assign(opened, { [Symbol.asyncDispose]: () => opened.close() });

  test('sweep containers of hosts that are gone, but not those of other namespaces', async () => {
    const elsewhere = keyspaceOf(`test-engine-other-${process.pid}`);
    await using stack = new AsyncDisposableStack();
    const opened: Record<string, Sandboxes> = {};
    for (const [hostId, of] of [
      ['known', namespace],
      ['gone', namespace],
      ['gone-elsewhere', elsewhere],
    ] as const) {
      const other = await open(hostId, of);
      stack.defer(() => other.close());
      opened[hostId] = other;
    }
    const kept = await create(opened.known);
    const left = await create(opened.gone);
    const foreign = await create(opened['gone-elsewhere'], {}, elsewhere);
    stack.defer(() => foreign.remove());
    const own = await create();
    expect(
      await sandboxes.sweep(
        async (hostId) => hostId.startsWith('gone'),
        async () => undefined,
        0,
      ),
    ).toBe(1);
    const ids = [...(await containerIds()), ...(await containerIds(elsewhere))].sort();
    expect(ids).toEqual([kept.containerId, own.containerId, foreign.containerId].sort());
    expect(ids).not.toContain(left.containerId);
  });

  test('keep the directories of a host that was started under another namespace', async () => {
    const living = await create();
    const other = await open('h1', keyspaceOf(`test-engine-other-${process.pid}`));
    expect(await other.list()).toEqual([]);
    await other.close();
    await living.start();
    const [found] = await sandboxes.list();
    expect(found?.state).toBe('running');
  });
});
