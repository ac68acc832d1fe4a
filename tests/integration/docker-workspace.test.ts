import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keeperPath } from '@shellfleet/keeper';
import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import {
  createDockerSandboxes,
  type DockerSandboxesOptions,
  type Sandbox,
  type SandboxDeath,
  type Sandboxes,
} from '@shellfleet/worker';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { keyspaceOf } from '../support/keyspace.ts';

// A session that can write above another one's workspace could replace that by a link between the worker's check and
// the mount.

const ATTEMPTS = 40;
const AT_A_TIME = 4;
let directory: string;
let secret: string;
let options: DockerSandboxesOptions;
const opened: Sandboxes[] = [];

beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'ws-')));
  secret = join(directory, 'secret');
  await makePublic(secret);
  await writeFile(join(secret, 'of-the-host'), '');
  options = {
    namespace: keyspaceOf(`test-workspace-${process.pid}`),
    hostId: 'one',
    hostKey: Buffer.alloc(32, 7),
    directory: join(directory, 's'),
    keeperPath: await keeperPath(),
    transport: 'socket',
    socketPath: inject('dockerHost').replace('unix://', ''),
    allowances: {
      images: 'any',
      defaultImage: inject('sessionImage'),
      users: [],
      workspaces: [join(directory, 'ws')],
      bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
    },
  };
});

afterAll(async () => {
  for (const sandboxes of opened) {
    for (const { sandbox } of await sandboxes.list()) await sandbox.remove();
    await sandboxes.close();
  }
  await rm(directory, { recursive: true });
});

/** Lets every user write to a directory. */
async function makePublic(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  await chmod(path, 0o777);
}

async function open(changed: Partial<DockerSandboxesOptions> = {}): Promise<Sandboxes> {
  const sandboxes = await createDockerSandboxes({ ...options, ...changed });
  opened.push(sandboxes);
  return sandboxes;
}

/** Makes a session's directory `sub` below the listed one, with a link to the host's secret next to it. */
async function makeDirectory(
  name: string,
): Promise<{ parent: string; sub: string; link: string; swap: () => Promise<void> }> {
  const parent = join(directory, 'ws', name);
  const sub = join(parent, 'sub');
  const link = join(parent, 'link');
  await makePublic(sub);
  await writeFile(join(sub, 'of-the-session'), '');
  await symlink(secret, link);
  const swap = async () => {
    await rename(sub, join(parent, 'before'));
    await rename(link, sub);
  };
  return { parent, sub, link, swap };
}

let sessions = 0;
/** A shell that leaves a file in its workspace as soon as it runs. */
const LEAVES_A_FILE = ['/bin/sh', '-c', 'echo > "/workspace/left-by-$HOSTNAME"; exec sleep 1000'];

function create(sandboxes: Sandboxes, workspace: string, spec: SessionSpec = {}): Promise<Sandbox> {
  const session = { namespace: options.namespace, tenant: 'acme', session: `s${sessions++}` };
  const given = { workspace, shell: LEAVES_A_FILE, limits: { memoryBytes: 2 ** 26 }, ...spec };
  return sandboxes.create(session, sessionSpecSchema.parse(given));
}

/** Starts a sandbox, and waits until its shell has run or the sandbox has ended. */
async function outcomeOf(sandbox: Sandbox, directories: string[]): Promise<'a shell ran' | SandboxDeath> {
  let death: SandboxDeath | undefined;
  void sandbox.died.then((how) => {
    death = how;
  });
  const name = `left-by-${sandbox.containerId?.slice(0, 12)}`;
  const hasRun = async () => (await Promise.all(directories.map((path) => readdir(path)))).flat().includes(name);
  await sandbox.start();
  await expect.poll(async () => death !== undefined || (await hasRun()), { timeout: 20_000, interval: 10 }).toBe(true);
  return death ?? 'a shell ran';
}

const REFUSED: SandboxDeath = { reason: 'exited', exitCode: 106 };

describe('the workspace of a Docker session', () => {
  test('gets no shell if it became a link after the check', async () => {
    const { parent, sub, swap } = await makeDirectory('swapped');
    const sandboxes = await open();
    const swapped = await create(sandboxes, sub);
    const unchanged = await create(sandboxes, sub);
    expect(await outcomeOf(unchanged, [sub])).toBe('a shell ran');
    await swap();
    expect(await outcomeOf(swapped, [parent])).toEqual(REFUSED);
    expect(await readdir(secret)).toEqual(['of-the-host']);
    await expect(create(sandboxes, sub)).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
  });

  test('is not checked again if it is listed itself and below no other listed directory', async () => {
    const { sub, swap } = await makeDirectory('listed');
    const listed = await open({ allowances: { ...options.allowances, workspaces: [sub] } });
    const sandbox = await create(listed, sub);
    expect(await outcomeOf(sandbox, [sub])).toBe('a shell ran');
    const both = await open({ allowances: { ...options.allowances, workspaces: [join(directory, 'ws'), sub] } });
    const other = await create(both, sub);
    await swap();
    expect(await outcomeOf(other, [])).toEqual(REFUSED);
  });

  test('must be listed itself if the transport is attach', async () => {
    const { sub } = await makeDirectory('attach');
    await expect(create(await open({ transport: 'attach' }), sub)).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringMatching(/reached over attach/),
    });
    const listed = await open({ transport: 'attach', allowances: { ...options.allowances, workspaces: [sub] } });
    expect(await outcomeOf(await create(listed, sub), [sub])).toBe('a shell ran');
  });

  // S0-55, S1-39
  test("is created below a listed directory for the session's user, without following links", async () => {
    const { sub, link } = await makeDirectory('missing');
    const sandboxes = await open();
    const made = join(sub, 'a', 'b');
    expect(await outcomeOf(await create(sandboxes, made), [made])).toBe('a shell ran');
    const { uid, gid } = await stat(made);
    expect({ uid, gid }).toEqual({ uid: 1000, gid: 1000 });
    for (const outside of [join(link, 'new'), join(sub, 'x', '..', '..', '..', '..', 'new'), join(directory, 'new')])
      await expect(create(sandboxes, outside)).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    expect(await readdir(secret)).toEqual(['of-the-host']);
    expect(await readdir(directory)).not.toContain('new');
  });

  test('is checked at its target in the container, too', async () => {
    const { sub, parent, swap } = await makeDirectory('target');
    const sandboxes = await open();
    const shell = ['/bin/sh', '-c', 'echo > "/data/left-by-$HOSTNAME"; exec sleep 1000'];
    const workspace = { path: sub, target: '/data' };
    const unchanged = await create(sandboxes, sub, { workspace, shell });
    const swapped = await create(sandboxes, sub, { workspace, shell });
    expect(await outcomeOf(unchanged, [sub])).toBe('a shell ran');
    await swap();
    expect(await outcomeOf(swapped, [parent])).toEqual(REFUSED);
    expect(await readdir(secret)).toEqual(['of-the-host']);
  });

  test('gets no directory from `cwd` or from volumes of the image', async () => {
    const { sub } = await makeDirectory('made');
    const sandboxes = await open();
    await outcomeOf(await create(sandboxes, sub, { cwd: '/workspace/nologin' }), [sub]);
    expect((await readdir(sub)).filter((name) => !name.startsWith('left-by-'))).toEqual(['of-the-session']);
    const docker = new Docker({ socketPath: options.socketPath });
    const base = await docker.createContainer({ Image: inject('sessionImage'), Cmd: ['true'] });
    const image = `test-volumes:${process.pid}`;
    try {
      const [repo, tag] = image.split(':');
      await base.commit({ repo, tag, changes: 'VOLUME /elsewhere/nologin' });
      await expect(create(sandboxes, sub, { image })).rejects.toMatchObject({
        code: 'SANDBOX_UNAVAILABLE',
        message: expect.stringMatching(/declares volumes/),
      });
    } finally {
      await base.remove();
      await docker.getImage(image).remove();
    }
  });

  test(`is never another host directory in ${ATTEMPTS} attempts while a link replaces it`, async () => {
    const { parent, sub, link } = await makeDirectory('race');
    const exchange = `import ctypes, random, time
call = ctypes.CDLL(None).syscall
while True:
  call(${process.arch === 'x64' ? 316 : 276}, -100, b"${sub}", -100, b"${link}", 2); time.sleep(random.uniform(0.01, 0.12))`;
    const swapper = spawn('python3', ['-c', exchange], { stdio: 'ignore' });
    const sandboxes = await open();
    const counts = { refused: 0, ran: 0 };
    const attempt = async () => {
      const refused = (error: { code: string }) => {
        expect(error.code).toBe('SANDBOX_UNAVAILABLE');
      };
      const sandbox = await create(sandboxes, sub).catch(refused);
      if (sandbox === undefined) return;
      const outcome = await outcomeOf(
        sandbox,
        [sub, link, parent].filter((path) => existsSync(path)),
      );
      counts[outcome === 'a shell ran' ? 'ran' : 'refused'] += 1;
      await sandbox.remove();
    };
    try {
      // On a busy machine many attempts in a row may find the link; at least one has to find the directory.
      for (let done = 0; done < ATTEMPTS || (counts.ran === 0 && done < 10 * ATTEMPTS); done += AT_A_TIME)
        await Promise.all(Array.from({ length: AT_A_TIME }, attempt));
    } finally {
      swapper.kill('SIGKILL');
      await once(swapper, 'exit');
    }
    expect(counts.ran).toBeGreaterThan(0);
    expect(await readdir(secret)).toEqual(['of-the-host']);
  }, 60_000);
});
