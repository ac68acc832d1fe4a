import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sessionSpecSchema } from '@shellfleet/protocol';
import { createDockerSandboxes, type DockerSandboxesOptions, readLogin, type Sandboxes } from '@shellfleet/worker';
import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { type ImageRegistry, PASSWORD, startImageRegistry, USER } from '../support/image-registry.ts';
import { keyspaceOf } from '../support/keyspace.ts';
import { freePort } from '../support/redis-process.ts';
import { until } from '../support/until.ts';

// The images of a host, with a registry that asks for a password.

// More images: SHELLFLEET_TEST_IMAGES=500 vitest run --project integration tests/integration/host-images.test.ts
const IMAGES = Number(process.env.SHELLFLEET_TEST_IMAGES ?? 10);
const IMAGE_BYTES = 100_000;

const keeperPath = fileURLToPath(new URL('../fixtures/stands-in-for-the-keeper.sh', import.meta.url));
const socketPath = inject('dockerHost').replace('unix://', '');
const docker = new Docker({ socketPath });
const namespace = keyspaceOf(`test-images-${process.pid}`);
const basic = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
let registry: ImageRegistry;
let directory: string;
let opened: Sandboxes[];

beforeAll(async () => {
  registry = await startImageRegistry();
});
afterAll(() => registry[Symbol.asyncDispose]());
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-images-'));
  opened = [];
});
afterEach(async () => {
  for (const sandboxes of opened) {
    for (const { sandbox } of await sandboxes.list()) await sandbox.remove();
    await sandboxes.close();
  }
  await rm(directory, { recursive: true });
});

/** Writes a file of logins, and returns a reader of it. */
async function loginsOf(content: object): Promise<(registry: string) => ReturnType<typeof readLogin>> {
  const path = join(await mkdtemp(join(directory, 'logins-')), 'config.json');
  await writeFile(path, JSON.stringify(content));
  return (of) => readLogin(of, { path, isRequired: true, env: { PATH: `${directory}:${process.env.PATH}` } });
}

/** Opens the sandboxes of a host with the login for the registry. Its record is in the directory of the test. */
async function openHost(images: Partial<NonNullable<DockerSandboxesOptions['images']>> = {}): Promise<Sandboxes> {
  const login = await loginsOf({ auths: { [registry.address]: { auth: basic } } });
  const sandboxes = await createDockerSandboxes({
    ...{ namespace, hostId: 'images', hostKey: Buffer.alloc(32, 7), directory: join(directory, 'h') },
    ...{ keeperPath, transport: 'socket', socketPath },
    images: { recordPath: join(directory, 'images.json'), budget: {}, prepull: [], login, ...images },
    allowances: {
      ...{ images: 'any', defaultImage: inject('sessionImage'), users: [], workspaces: [] },
      bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
    },
  });
  opened.push(sandboxes);
  return sandboxes;
}

const create = (sandboxes: Sandboxes, image: string) =>
  sandboxes.create({ namespace, tenant: 'acme', session: 's' }, sessionSpecSchema.parse({ image }));

/** Pulls an image and uses it in a sandbox, which ends at once. */
async function use(sandboxes: Sandboxes, image: string): Promise<void> {
  await sandboxes.pull(image);
  await (await create(sandboxes, image)).remove();
}

/** Returns those of the images that the engine has. */
async function present(names: readonly string[]): Promise<string[]> {
  const tags = new Set((await docker.listImages()).flatMap(({ RepoTags }) => RepoTags ?? []));
  return names.filter((name) => tags.has(name));
}

describe('the images of a host', () => {
  test('are pulled once, however many sessions want the same one', async () => {
    const sandboxes = await openHost();
    const [alone = '', shared = ''] = await registry.add(2);
    await sandboxes.pull(alone);
    await Promise.all([...Array.from({ length: 8 }, () => sandboxes.pull(shared)), sandboxes.images?.fetch(shared)]);
    await expect.poll(() => registry.reads(shared)).toBeGreaterThan(0);
    expect(registry.reads(shared)).toBe(registry.reads(alone));
  });

  test('are listed by their digest without a tag, and not without any name', async () => {
    const sandboxes = await openHost();
    const [tagged = ''] = await registry.add(1);
    await sandboxes.pull(tagged);
    const [byDigest = ''] = (await docker.getImage(tagged).inspect()).RepoDigests ?? [];
    await docker.getImage(tagged).remove();
    await sandboxes.images?.fetch(byDigest);
    const listed = (await sandboxes.images?.list()) ?? [];
    expect(listed).toContainEqual(expect.objectContaining({ image: byDigest, isPulled: true, inUse: false }));
    expect(listed.filter(({ image }) => image.includes('<none>'))).toEqual([]);
    expect((await sandboxes.images?.prune({ dryRun: false }))?.map(({ image }) => image)).toContain(byDigest);
  });

  test('are pulled four at a time from one registry', async () => {
    const port = await freePort();
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(port, '127.0.0.1');
    const sandboxes = await openHost();
    const pulls = Array.from({ length: 6 }, (_, index) => sandboxes.pull(`127.0.0.1:${port}/a:${index}`));
    const ended = Promise.allSettled(pulls);
    await until(
      () => sockets.length,
      (connections) => connections >= 4,
    );
    const running = sandboxes.images?.running() ?? [];
    expect(running).toHaveLength(4);
    expect(running).toContainEqual({ image: expect.stringMatching(/\/a:\d$/), doneBytes: 0, totalBytes: 0 });
    silent.close();
    for (const socket of sockets) socket.destroy();
    expect((await ended).every(({ status }) => status === 'rejected')).toBe(true);
    expect(sandboxes.images?.running()).toEqual([]);
  });

  test('stay within their budget, and the least recently used go first', async () => {
    const images = await registry.add(6, 100_000);
    const [first = '', second = '', ...rest] = images;
    const sandboxes = await openHost({ budget: { maxBytes: 350_000 } });
    await use(sandboxes, first);
    await use(sandboxes, second);
    await (await create(sandboxes, first)).remove();
    for (const image of rest.slice(0, 2)) await use(sandboxes, image);
    expect(await present(images)).toEqual([first, rest[0], rest[1]]);
    for (const image of rest.slice(2)) await use(sandboxes, image);
    expect(await present(images)).toEqual(rest.slice(1));
    // Other hosts learn by their marks which images there are.
    const isMarked = (image: string) => sandboxes.images?.marks.includes(sandboxes.images.markOf(image));
    expect(images.filter(isMarked)).toEqual(rest.slice(1));
  });

  test(`go through a budget for a few of them, ${IMAGES} in turn, each pulled once`, async () => {
    const few = Math.min(20, IMAGES / 2);
    const images = await registry.add(IMAGES, IMAGE_BYTES);
    const [alone = '', ...rest] = images;
    const sandboxes = await openHost({ budget: { maxBytes: (few + 0.5) * IMAGE_BYTES } });
    await use(sandboxes, alone);
    await expect.poll(() => registry.reads(alone)).toBeGreaterThan(0);
    let mostPulls = 0;
    const watch = setInterval(() => {
      mostPulls = Math.max(mostPulls, sandboxes.images?.running().length ?? 0);
    }, 5);
    const next = rest.values();
    const line = async () => {
      for (const image of next) await use(sandboxes, image);
    };
    await Promise.all(Array.from({ length: 8 }, line)).finally(() => clearInterval(watch));
    await sandboxes.images?.tend();
    expect((await present(images)).length).toBeLessThanOrEqual(few);
    expect(mostPulls).toBeLessThanOrEqual(4);
    expect(new Set(images.map((image) => registry.reads(image)))).toEqual(new Set([registry.reads(alone)]));
  }, 1_800_000);

  test('are not removed while in use, nor if the host did not pull them', async () => {
    const [ours = '', theirs = ''] = await registry.add(2);
    const sandboxes = await openHost();
    await finishedPull(theirs);
    await sandboxes.pull(theirs);
    await sandboxes.pull(ours);
    const sandbox = await create(sandboxes, ours);
    expect(await sandboxes.images?.prune({ dryRun: false })).toEqual([]);
    await sandbox.remove();
    expect(await sandboxes.images?.prune({ dryRun: true })).toMatchObject([{ image: ours }]);
    expect(await sandboxes.images?.prune({ dryRun: false })).toMatchObject([{ image: ours, inUse: false }]);
    expect(await present([ours, theirs])).toEqual([theirs]);
  });

  test('are remembered by the next process of the host', async () => {
    const [image = ''] = await registry.add(1);
    const before = await openHost();
    await use(before, image);
    await before.close();
    const after = await openHost();
    expect(await after.images?.list()).toContainEqual(
      expect.objectContaining({ image, isPulled: true, pinned: false }),
    );
    expect(await after.images?.prune({ dryRun: false })).toMatchObject([{ image }]);
  });

  test('include those of the list, which are pulled in advance and kept', async () => {
    const [image = ''] = await registry.add(1);
    const missing = `127.0.0.1:${await freePort()}/missing:1`;
    const sandboxes = await openHost({ prepull: [image, missing], budget: { maxBytes: 0 } });
    await sandboxes.images?.tend();
    await expect
      .poll(() => sandboxes.images?.warnings())
      .toEqual([expect.stringContaining(`The image ${missing} is not on this host and could not be pulled`)]);
    await until(
      () => present([image]),
      (there) => there.length === 1,
    );
    await (await create(sandboxes, image)).remove();
    await sandboxes.images?.tend();
    expect(await sandboxes.images?.prune({ dryRun: false })).toEqual([]);
    expect(await sandboxes.images?.list()).toContainEqual(expect.objectContaining({ image, pinned: true }));
  });

  test('are pulled again when a registry that was killed is back', async () => {
    const [image = ''] = await registry.add(1);
    const sandboxes = await openHost();
    await registry.kill();
    await expect(sandboxes.pull(image)).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      message: expect.stringContaining('cannot be reached'),
    });
    await registry.start();
    await sandboxes.pull(image);
    expect(await present([image])).toEqual([image]);
  });
});

async function finishedPull(image: string): Promise<void> {
  const authconfig = { username: USER, password: PASSWORD, serveraddress: registry.address };
  const progress = await docker.pull(image, { authconfig });
  await new Promise((resolve) => docker.modem.followProgress(progress, resolve));
}

describe('the login for a registry', () => {
  test('is needed, and a wrong one is told from a missing image', async () => {
    const [image = ''] = await registry.add(1);
    const wrong = Buffer.from(`${USER}:wrong`).toString('base64');
    for (const auths of [{}, { [registry.address]: { auth: wrong } }]) {
      const sandboxes = await openHost({ login: await loginsOf({ auths }) });
      await expect(sandboxes.pull(image)).rejects.toMatchObject({
        code: 'IMAGE_UNAVAILABLE',
        message: expect.stringContaining('asks for a login'),
      });
    }
  });

  test('comes from a credential helper, whose failure is said without its words', async () => {
    const [image = ''] = await registry.add(1);
    const helper = join(directory, 'docker-credential-vault');
    const reply = JSON.stringify({ ServerURL: registry.address, Username: USER, Secret: PASSWORD });
    await writeFile(helper, `#!/bin/sh\n[ "$(cat)" = ${registry.address} ] && echo '${reply}'\n`);
    await chmod(helper, 0o755);
    const sandboxes = await openHost({ login: await loginsOf({ credHelpers: { [registry.address]: 'vault' } }) });
    await sandboxes.pull(image);
    await writeFile(helper, `#!/bin/sh\necho ${PASSWORD}; exit 1\n`);
    const failed: unknown = await sandboxes.pull(image).catch((error: unknown) => error);
    expect(failed).toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      message: expect.stringContaining(
        'the credential helper docker-credential-vault of this host gave no login for it',
      ),
    });
    expect(JSON.stringify(failed)).not.toContain(PASSWORD);
  });

  test('is not looked for in a missing file, unless the operator named the file', async () => {
    const file = { path: join(directory, 'missing.json'), env: {} };
    expect(await readLogin('example.com', { ...file, isRequired: false })).toBeUndefined();
    await expect(readLogin('example.com', { ...file, isRequired: true })).rejects.toThrow(
      'missing.json, cannot be read',
    );
  });

  test('of Docker Hub is found by its old address, and a token is passed on', async () => {
    const login = await loginsOf({
      auths: { 'https://index.docker.io/v1/': { auth: basic }, 'https://example.com': { identitytoken: 't' } },
    });
    expect(await login('docker.io')).toMatchObject({ username: USER, password: PASSWORD });
    expect(await login('example.com')).toMatchObject({ identitytoken: 't' });
    expect(await login('elsewhere.example')).toBeUndefined();
  });
});
