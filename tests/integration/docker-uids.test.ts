import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { createDockerSandboxes, type DockerSandboxesOptions, type Sandbox, type Sandboxes } from '@shellfleet/worker';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startEngineProxy } from '../support/engine-proxy.ts';
import { keyspaceOf } from '../support/keyspace.ts';

// The kernel counts inotify instances for each uid. One session takes as many as it can get, and its neighbour needs
// one.

const keeperPath = fileURLToPath(new URL('../fixtures/stands-in-for-the-keeper.sh', import.meta.url));
const TAKE_ALL = `python3 -c "import ctypes, time; c = ctypes.CDLL(None); any(c.inotify_init() < 0 for _ in range(5000)); print('has all', flush=True); time.sleep(100)" > has & until grep -q all has; do sleep 0.05; done`;
const TAKE_ONE = `python3 -c "import ctypes; print('got one' if ctypes.CDLL(None).inotify_init() >= 0 else 'got none')"`;
let directory: string;
const opened: Sandboxes[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'uids-'));
});
afterAll(async () => {
  for (const sandboxes of opened) {
    for (const { sandbox } of await sandboxes.list()) await sandbox.remove();
    await sandboxes.close();
  }
  await rm(directory, { recursive: true });
});

async function open({
  workspaces = [],
  ...changed
}: Partial<DockerSandboxesOptions> & { workspaces?: string[] }): Promise<Sandboxes> {
  const sandboxes = await createDockerSandboxes({
    namespace: keyspaceOf(`test-uids-${process.pid}`),
    hostId: 'one',
    hostKey: Buffer.alloc(32, 7),
    directory: join(directory, 's'),
    keeperPath,
    transport: 'attach',
    socketPath: inject('dockerHost').replace('unix://', ''),
    allowances: {
      images: 'any',
      defaultImage: inject('sessionImage'),
      users: [],
      workspaces,
      bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
    },
    ...changed,
  });
  opened.push(sandboxes);
  return sandboxes;
}

/** The PATH of the session image. */
const USUAL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
let sessions = 0;
const refOf = () => ({ namespace: keyspaceOf(`test-uids-${process.pid}`), tenant: 'acme', session: `s${sessions++}` });

async function start(sandboxes: Sandboxes, spec: SessionSpec = {}, own?: Sandbox) {
  const beside = own && { sandboxId: own.id, allowances: { modes: [], networks: [], hosts: [] } };
  const options = beside === undefined ? {} : { beside };
  const sandbox = await sandboxes.create(own?.session ?? refOf(), sessionSpecSchema.parse(spec), options);
  if (sandbox.link.type !== 'attach') throw new Error('these tests talk over attach');
  const stream = await sandbox.link.open();
  await sandbox.start();
  let said = '';
  stream.on('data', (data) => {
    said += String(data);
  });
  const run = async (line: string): Promise<string> => {
    said = '';
    stream.write(`${line}\n`);
    await expect.poll(() => said, { timeout: 20_000, interval: 20 }).toMatch(/^done \d+$/m);
    return said.replace(/^done \d+\n/m, '');
  };
  return { sandbox, run };
}

/** Returns what a neighbour gets next to a session that takes all instances. */
async function askBesideAttacker(sandboxes: Sandboxes, spec: SessionSpec = {}): Promise<string> {
  const attacker = await start(sandboxes, spec);
  const neighbour = await start(sandboxes, spec);
  await attacker.run(TAKE_ALL);
  const got = await neighbour.run(TAKE_ONE);
  await attacker.sandbox.remove();
  await neighbour.sandbox.remove();
  return got;
}

describe('a session that takes every inotify instance of its uid', () => {
  test('leaves its neighbour none if all sessions share one uid, as documented', async () => {
    // Sessions of other tests have the uid 1000, so this session has another uid.
    expect(await askBesideAttacker(await open({}), { user: '4999:4999' })).toBe('got none\n');
  });

  test('does not affect its neighbour if each session has its own uid', async () => {
    expect(await askBesideAttacker(await open({ uids: { first: 200_000, last: 200_009 } }))).toBe('got one\n');
  });
});

describe('a uid for each session', () => {
  test('has a name, home and workspace, and belongs to one session only', async () => {
    const sandboxes = await open({ uids: { first: 200_100, last: 200_101 } });
    const one = await start(sandboxes);
    const two = await start(sandboxes);
    const look = 'whoami; id -u; echo $HOME; touch mine && stat -c %u:%U mine';
    expect(await one.run(look)).toBe('session\n200100\n/workspace\n200100:session\n');
    expect(await two.run(look)).toBe('session\n200101\n/workspace\n200101:session\n');
    const unavailable = { code: 'SANDBOX_UNAVAILABLE', message: expect.stringMatching(/uid/) };
    await expect(start(sandboxes)).rejects.toMatchObject(unavailable);
    await expect(start(sandboxes, { user: '200101:200101' })).rejects.toMatchObject(unavailable);
    const next = await open({ uids: { first: 200_100, last: 200_101 } });
    expect(await next.list()).toHaveLength(2);
    await one.sandbox.remove();
    await expect(start(next)).rejects.toMatchObject(unavailable);
  });

  test('stays reserved until the container of its session is removed', async () => {
    await using proxy = await startEngineProxy();
    const { socketPath } = proxy;
    const sandboxes = await open({
      ...{ uids: { first: 200_500, last: 200_500 }, socketPath, engineTimes: { callTimeoutMs: 2_000 } },
    });
    const { sandbox } = await start(sandboxes);
    proxy.silence = (request) => request.startsWith('DELETE');
    await expect(sandbox.remove()).rejects.toMatchObject({ code: 'DOCKER_UNAVAILABLE' });
    await expect(start(sandboxes)).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    proxy.silence = () => false;
    for (const found of await sandboxes.list()) await found.sandbox.remove();
    const next = await start(sandboxes);
    expect(await next.run('id -u')).toBe('200500\n');
    await next.sandbox.remove();
    opened.splice(opened.indexOf(sandboxes), 1);
    await sandboxes.close();
  });

  // S3-25
  test('is shared with the wider container of its session', async () => {
    const workspace = join(directory, 'ws');
    await mkdir(workspace, { mode: 0o755 });
    await chown(workspace, 200_300, 200_300);
    const sandboxes = await open({ uids: { first: 200_300, last: 200_301 }, workspaces: [workspace] });
    const spec = { workspace, sandbox: { mode: 'read-only' as const } };
    const own = await start(sandboxes, spec);
    const wide = await start(sandboxes, { workspace }, own.sandbox);
    const look = 'id -u; echo $PATH; touch /workspace/x 2>/dev/null && ls /workspace';
    expect(await own.run(look)).toBe(`200300\n${USUAL_PATH}\n`);
    expect(await wide.run(look)).toBe(`200300\n${USUAL_PATH}\nx\n`);
    const states = (await (await open({ uids: { first: 200_300, last: 200_301 } })).list()).map(
      ({ sandbox, state }) => [sandbox.id, state],
    );
    expect(states).toContainEqual([own.sandbox.id, 'running']);
    expect(states).toContainEqual([wide.sandbox.id, 'beside']);
    // The end of the wider container does not free the uid, which the session still has.
    await wide.sandbox.remove();
    expect(await (await start(sandboxes)).run('id -u')).toBe('200301\n');
    await expect(start(sandboxes)).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
  });

  test('is freed if the session is refused for its workspace or image', async () => {
    const sandboxes = await open({ uids: { first: 200_400, last: 200_400 }, workspaces: [directory] });
    await expect(start(sandboxes, { workspace: join(directory, 's') })).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('list this very directory'),
    });
    await expect(start(sandboxes, { image: 'nowhere.invalid/nothing:1' })).rejects.toThrow('is not on this host');
    expect(await (await start(sandboxes)).run('id -u')).toBe('200400\n');
  });

  test('is in a users file that the socket transport mounts read-only', async () => {
    const sandboxes = await open({ transport: 'socket', uids: { first: 200_200, last: 200_201 } });
    const sandbox = await sandboxes.create(refOf(), sessionSpecSchema.parse({}));
    await sandbox.start();
    const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
    const Cmd = ['sh', '-c', 'whoami; echo x 2>/dev/null >> /etc/passwd || echo refused'];
    const exec = await docker.getContainer(sandbox.containerId ?? '').exec({ Cmd, AttachStdout: true, Tty: true });
    expect((await text(await exec.start({ Tty: true }))).replaceAll('\r', '')).toMatch(
      /^session\n(?:sh: .*\n)?refused\n$/,
    );
  });
});
