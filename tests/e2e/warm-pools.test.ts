import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Session, SessionSpec } from '@shellfleet/client';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// One host with two pools. `used` is the image of the second, a name that gets other content.

const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
const repo = `pool-test-${process.pid}`;
const IMAGE = `${repo}:latest`;
const SLOTS = 6;
const POOLS = `pools:
  - { min: 2, max: 3 }
  - { image: '${IMAGE}', limits: { memoryBytes: 134217728 }, min: 1, max: 1 }
`;

let directory: string;
let stack: TestFleet;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-pools-'));
  const path = join(directory, 'config.yaml');
  await writeFile(path, POOLS);
  await nameIs(await digestOf(inject('sessionImage')));
  stack = await startFleet({
    slots: SLOTS,
    env: { SHELLFLEET_CONFIG: path, SHELLFLEET_WORKSPACES: directory, SHELLFLEET_KEEP_CONTAINERS: '1' },
  });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await docker.getImage(IMAGE).remove();
  await rm(directory, { recursive: true });
});

const digestOf = async (image: string) => (await docker.getImage(image).inspect()).Id;
const nameIs = (digest: string) => docker.getImage(digest).tag({ repo, tag: 'latest' });
const pools = async () => (await stack.fleet.hosts())[0]?.pools ?? [];
const ready = async () => (await pools()).map((pool) => pool.ready);
/** Waits until the pools have so many sandboxes ready. */
const untilReady = (...counts: number[]) => until(ready, (found) => String(found) === String(counts), 30_000);
const containers = () =>
  docker.listContainers({ all: true, filters: { label: [`shellfleet.namespace=${stack.namespace}`] } });
/** Ids of all containers that were not created for a session, as their host names show them. */
const spares = async () =>
  (await containers())
    .filter(({ Labels }) => Labels['shellfleet.session'] === undefined)
    .map(({ Id }) => Id.slice(0, 12));
const nameOf = async (session: Session) => (await session.run('hostname')).stdout.trim();
const open = (id: string, spec?: SessionSpec) => stack.fleet.session(id, spec);

describe('a session for which a pool has a sandbox', () => {
  test('gets a container that was there before, and its own variables, directory and secrets', async () => {
    await untilReady(2, 1);
    const before = await spares();
    const session = await open('warm', {
      ...{ env: { NAME: 'own' }, secrets: { TOKEN: 'planted-secret' } },
      startupCommands: ['mkdir -p deep && cd deep'],
    });
    expect(await session.run('echo $NAME $TOKEN $PWD; id -u; ls -A /workspace')).toMatchObject({
      stdout: 'own [REDACTED_SECRET] /workspace/deep\n1000\ndeep\n',
      ...{
        outcome: 'success',
        shell: { state: 'kept', epoch: 1 },
        imageDigest: await digestOf(inject('sessionImage')),
      },
    });
    const name = await nameOf(session);
    expect(before).toContain(name);
    expect(await session.info()).toMatchObject({ state: 'ready', epoch: 1, start: 'warm' });
    expect(await session.info()).not.toHaveProperty('coldReason');
    await session.close();
    expect(await spares()).not.toContain(name);
  });

  test('never shares it with another session, and the pool counts which came too late', async () => {
    await untilReady(2, 1);
    const [earlier] = await until(pools, ([usual]) => usual?.asked === 1);
    const sessions = await Promise.all(['a', 'b', 'c', 'd'].map((id) => open(`burst-${id}`)));
    const names = await Promise.all(sessions.map(nameOf));
    expect(new Set(names).size).toBe(4);
    const starts = await Promise.all(sessions.map(async (session) => session.info()));
    const cold = starts.filter(({ start }) => start === 'cold');
    expect(new Set(cold.map(({ coldReason }) => coldReason))).toEqual(new Set(['empty']));
    const [now] = await until(pools, ([usual]) => usual?.asked === (earlier?.asked ?? 0) + 4);
    expect(now?.warm).toBe((earlier?.warm ?? 0) + 4 - cold.length);
    expect(now?.hitRate).toBeCloseTo((now?.warm ?? 0) / (now?.asked ?? 1));
    await Promise.all(sessions.map((session) => session.close()));
  });

  test.each<[string, SessionSpec]>([
    ['workspace', { workspace: '' }],
    ['user', { user: '1234:1234' }],
    ['no-pool', { limits: { pids: 100 } }],
    ['no-pool', { sandbox: { mode: 'read-only' } }],
  ])('starts cold for the reason %s with %j', async (coldReason, spec) => {
    const session = await open(`cold-${coldReason}-${JSON.stringify(spec).length}`, {
      ...spec,
      ...('workspace' in spec && { workspace: join(directory, 'mounted') }),
    });
    expect(await session.run('true')).toMatchObject({ outcome: 'success' });
    expect(await session.info()).toMatchObject({ start: 'cold', coldReason });
    await session.close();
  });
});

describe('a container from a pool', () => {
  test('is kept for a post-mortem as that of its session', async () => {
    await until(ready, ([usual = 0]) => usual > 0);
    const session = await open('post-mortem', { keepOnFailure: true });
    const name = await nameOf(session);
    await session.run('exit 3');
    expect(await session.info()).toMatchObject({ start: 'warm' });
    await session.close();
    expect((await session.info()).kept).toMatchObject([
      { hostId: 'h1', containerId: expect.stringMatching(`^${name}`) },
    ]);
    await stack.fleet.purge('post-mortem');
    await until(spares, (found) => !found.includes(name));
  });
});

describe('a pool', () => {
  test('replaces its containers that were killed, before a session gets one', async () => {
    await untilReady(3, 1);
    const killed = await spares();
    for (const id of killed) await docker.getContainer(id).kill();
    // The host counts a container as ready until the engine has told it of its end.
    await until(spares, (found) => found.length === killed.length && !found.some((id) => killed.includes(id)));
    await untilReady(3, 1);
    const session = await open('after-kills');
    expect(await session.run('echo fresh')).toMatchObject({ stdout: 'fresh\n' });
    expect(await session.info()).toMatchObject({ start: 'warm' });
    await session.close();
  });

  test('replaces its sandboxes when the name of its image has new content', async () => {
    await until(ready, ([, ofImage]) => ofImage === 1);
    const newer = await digestOf(inject('testImages').busybox);
    await nameIs(newer);
    const from = performance.now();
    await until(pools, ([, ofImage]) => (ofImage?.oldestMs ?? Infinity) < performance.now() - from - 1_000);
    expect((await containers()).filter(({ ImageID }) => ImageID === newer)).toHaveLength(1);
    const session = await open('newer', { image: IMAGE, limits: { memoryBytes: 134_217_728 } });
    expect(await session.run('true')).toMatchObject({ imageDigest: newer });
    expect(await session.info()).toMatchObject({ start: 'warm', image: IMAGE });
    await session.close();
  });

  test('gives way to sessions of other kinds, and comes back when they have left', async () => {
    await until(ready, ([usual = 0, ofImage]) => usual >= 2 && ofImage === 1);
    const sessions = await Promise.all(
      Array.from({ length: SLOTS }, (_, index) => open(`other-${index}`, { limits: { pids: 200 } })),
    );
    for (const result of await Promise.all(sessions.map((session) => session.run('true'))))
      expect(result).toMatchObject({ outcome: 'success' });
    await untilReady(0, 0);
    await until(spares, (found) => found.length === 0);
    expect(await containers()).toHaveLength(SLOTS);
    await Promise.all(sessions.map((session) => session.close()));
    await until(ready, ([usual = 0, ofImage]) => usual >= 2 && ofImage === 1);
  });

  test('leaves nothing behind a killed worker, whose next process keeps the sessions', async () => {
    const [worker] = stack.workers;
    const session = await open('survivor');
    await session.run('kept=yes');
    const name = await nameOf(session);
    expect(await session.info()).toMatchObject({ start: 'warm' });
    await until(ready, ([usual = 0, ofImage]) => usual >= 2 && ofImage === 1);
    const before = await spares();
    await worker?.kill();
    await worker?.start();
    expect(await session.run('echo $kept; hostname')).toMatchObject({
      ...{ stdout: `yes\n${name}\n`, shell: { state: 'kept', epoch: 1 } },
    });
    await until(ready, ([usual = 0, ofImage]) => usual >= 2 && ofImage === 1);
    const after = await spares();
    expect(after.filter((id) => before.includes(id))).toEqual([name]);
    await session.close();
    await until(spares, (found) => !found.includes(name));
  });

  test('is empty behind a worker that stops, whose session stays', async () => {
    const [worker] = stack.workers;
    await until(ready, ([usual = 0]) => usual >= 2);
    const session = await open('handed-over');
    const name = await nameOf(session);
    await worker?.stop('SIGTERM');
    expect(await spares()).toEqual([name]);
    await worker?.start();
    expect(await nameOf(session)).toBe(name);
  });
});
