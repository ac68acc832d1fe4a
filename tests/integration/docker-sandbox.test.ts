import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { createDockerSandboxes, type DockerSandboxesOptions, type Sandbox, type Sandboxes } from '@shellfleet/worker';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { keyspaceOf } from '../support/keyspace.ts';

const MIB = 2 ** 20;
const keeperPath = fileURLToPath(new URL('../fixtures/stands-in-for-the-keeper.sh', import.meta.url));
const socketPath = inject('dockerHost').replace('unix://', '');
const docker = new Docker({ socketPath });
const namespace = keyspaceOf(`test-sandbox-${process.pid}`);
let directory: string;
let sandboxes: Sandboxes;
let sessions = 0;

function optionsFor(hostId: string, transport: 'socket' | 'attach'): DockerSandboxesOptions {
  return {
    namespace,
    hostId,
    hostKey: Buffer.alloc(32, 7),
    directory: join(directory, hostId),
    keeperPath,
    transport,
    socketPath,
    allowances: {
      images: 'any',
      defaultImage: inject('sessionImage'),
      users: [],
      workspaces: [join(directory, 'shared')],
      runtimes: ['runc', 'runsc-that-is-not-there'],
      bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
    },
  };
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandbox-'));
  sandboxes = await createDockerSandboxes(optionsFor('one', 'attach'));
});

afterAll(async () => {
  const found = await sandboxes.list();
  await Promise.all(found.map(({ sandbox }) => sandbox.remove()));
  await sandboxes.close();
  await rm(directory, { recursive: true });
});

function create(spec: SessionSpec = {}, from = sandboxes): Promise<Sandbox> {
  const session = { namespace, tenant: 'acme', session: `s${sessions++}` };
  return from.create(session, sessionSpecSchema.parse({ limits: { memoryBytes: 64 * MIB }, ...spec }));
}

function containerOf({ containerId }: Sandbox): Docker.Container {
  return docker.getContainer(String(containerId));
}

/** Starts a sandbox, and returns it with a function that runs lines in it. */
async function start(spec: SessionSpec = {}, from = sandboxes) {
  const sandbox = await create(spec, from);
  if (sandbox.link.type !== 'attach') throw new Error('these tests talk over attach');
  const stream: Duplex = await sandbox.link.open();
  await sandbox.start();
  let text = '';
  stream.on('data', (data) => {
    text += String(data);
  });
  const run = async (line: string): Promise<string> => {
    text = '';
    stream.write(`${line}\n`);
    await expect.poll(() => text, { timeout: 10_000, interval: 10 }).toMatch(/^done \d+$/m);
    return text.replace(/^done \d+\n/m, '');
  };
  return { sandbox, stream, run, [Symbol.asyncDispose]: () => sandbox.remove() };
}

describe('a sandbox', () => {
  // S0-50
  test('is hardened, and gives its user a home directory', async () => {
    await using box = await start();
    const status = await box.run("grep -E '^(CapBnd|CapEff|NoNewPrivs|Seccomp):' /proc/self/status");
    expect(status.replace(/\t/g, ' ').split('\n')).toEqual([
      'CapEff: 0000000000000000',
      'CapBnd: 0000000000000000',
      'NoNewPrivs: 1',
      'Seccomp: 2',
      '',
    ]);
    expect(await box.run('pwd; echo $HOME; id -u; stat -c %u:%g:%a /workspace; echo ok > file; cat file')).toBe(
      '/workspace\n/workspace\n1000\n1000:1000:755\nok\n',
    );
    expect(await box.run('ls /sys/class/net; ulimit -c; ulimit -n')).toBe('lo\n0\n1024\n');
    expect(
      await box.run('unshare -r true 2>/dev/null && echo escaped; mount -t tmpfs x /mnt 2>/dev/null && echo escaped'),
    ).toBe('');
  });

  test('runs node, python, git and bash under its list of system calls', async () => {
    await using box = await start({ limits: { memoryBytes: 256 * MIB } });
    const worker = 'new (require("worker_threads").Worker)("console.log(1)", { eval: true })';
    expect(await box.run(`node -e '${worker}'`)).toBe('1\n');
    const pool =
      'import multiprocessing as m, threading\nt = threading.Thread(target=print, args=(2,)); t.start(); t.join()\nprint(m.Pool(2).map(abs, [-3]))';
    expect(await box.run(`python3 -c "$(printf '${pool.replaceAll('\n', '\\n')}')"`)).toBe('2\n[3]\n');
    expect(
      await box.run(
        'git init -q repo && cd repo && git -c user.name=a -c user.email=b commit -q --allow-empty -m 4 && git log --format=%s',
      ),
    ).toBe('4\n');
    expect(await box.run("bash -c 'echo $((2 + 3))' | cat")).toBe('5\n');
  });

  // S0-40
  test('passes its limits to the engine, which keeps no log of it', async () => {
    await using box = await start({ limits: { memoryBytes: 64 * MIB, cpus: 0.5, pids: 32 } });
    const { HostConfig: host, Config: config } = await containerOf(box.sandbox).inspect();
    expect(host).toMatchObject({
      Memory: 64 * MIB,
      MemorySwap: 64 * MIB,
      NanoCpus: 5e8,
      PidsLimit: 32,
      NetworkMode: 'none',
      LogConfig: { Type: 'none' },
      AutoRemove: false,
      Privileged: false,
    });
    expect(JSON.stringify(config.Labels)).not.toMatch(/[0-9a-f]{32}/);
    expect(
      config.Env?.filter((variable) => variable.startsWith('SF_')).map((variable) => variable.split('=')[0]),
    ).toEqual(['SF_TOKEN', 'SF_SYNC']);
  });

  test('sets no option in the engine that docs/sandbox-limits.md does not list', async () => {
    const page = await readFile(new URL('../../docs/sandbox-limits.md', import.meta.url), 'utf8');
    const table = page.split('| Option | Value | Why |')[1]?.split('\n\n')[0] ?? '';
    const decided = [...table.matchAll(/^\| (\w+) \|/gm)].map(([, name]) => name);
    const sandbox = await create();
    const { HostConfig: host } = await containerOf(sandbox).inspect();
    await sandbox.remove();
    const isEmpty = (value: unknown) =>
      ['null', '""', '0', 'false', '[]', '{}', '[0,0]'].includes(JSON.stringify(value));
    const set = Object.entries(host).filter(([, value]) => !isEmpty(value));
    expect(set.filter(([name]) => !decided.includes(name))).toEqual([]);
    expect(set.length).toBeGreaterThan(15);
  });

  // S0-43
  test('has a read-only root with writable directories if the session requests it', async () => {
    await using box = await start({ policy: { type: 'docker', readOnlyRootfs: true } });
    expect(
      await box.run(
        "grep -c ' / [^ ]* ro,' /proc/mounts; echo ok > /workspace/a; echo ok > /tmp/b; cat /workspace/a /tmp/b",
      ),
    ).toBe('1\nok\nok\n');
  });

  test("mounts only directories of the host below the operator's list, and follows no links", async () => {
    await expect(create({ workspace: directory })).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    await expect(create({ workspace: join(directory, 'missing') })).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
    });
    expect(await readdir(directory)).not.toContain('missing');
  });
});

describe('a mounted directory of the host', () => {
  test.each([
    ['writable', { path: '' }, 'of the host\nwritten\n'],
    ['read-only where the session asks for it', { path: '', readOnly: true }, 'of the host\nrefused\n'],
  ])('is %s', async (_title, workspace, expected) => {
    const shared = join(directory, 'shared');
    await mkdir(shared, { recursive: true });
    await chmod(shared, 0o777);
    await writeFile(join(shared, 'file'), 'of the host\n');
    await using box = await start({ workspace: { ...workspace, path: shared } });
    const write = 'if (echo > /workspace/new) 2>/dev/null; then echo written; else echo refused; fi';
    expect(await box.run(`cat /workspace/file; ${write}; rm -f /workspace/new 2>/dev/null`)).toBe(expected);
  });

  // S0-41
  test("is mounted at the target in the spec, next to the session's home", async () => {
    const shared = join(directory, 'shared');
    await mkdir(shared, { recursive: true });
    await chmod(shared, 0o777);
    await writeFile(join(shared, 'file'), 'of the host\n');
    await using box = await start({ workspace: { path: shared, target: shared } });
    expect(await box.run(`cat ${shared}/file; ls -A /workspace; stat -c %u /workspace; echo $HOME`)).toBe(
      'of the host\n1000\n/workspace\n',
    );
    await using readOnly = await start({
      policy: { type: 'docker', readOnlyRootfs: true },
      workspace: { path: shared, target: '/data', readOnly: true },
    });
    expect(
      await readOnly.run('cat /data/file; (echo > /data/new) 2>/dev/null || echo refused; echo ok > /workspace/a'),
    ).toBe('of the host\nrefused\n');
  });
});

describe('an image with settings of its own', () => {
  // S0-55
  test('does not change the program, directory or user of a session', async () => {
    const plain = await create();
    const changes = 'ENTRYPOINT ["/bin/false"]\nCMD ["never"]\nWORKDIR /usr\nUSER 2000\nENV FROM_IMAGE=yes';
    const { Id: image } = await containerOf(plain).commit({
      repo: 'shellfleet-test/own',
      tag: String(process.pid),
      changes,
    });
    await plain.remove();
    try {
      await using box = await start({ image: `shellfleet-test/own:${process.pid}` });
      expect(await box.run('pwd; id -u; echo $FROM_IMAGE')).toBe('/workspace\n1000\nyes\n');
    } finally {
      await docker.getImage(image).remove({ force: true });
    }
  });

  test('provides the user of a session if the spec requests it and the operator permits', async () => {
    const { id } = await docker
      .createContainer({
        Image: inject('sessionImage'),
        Entrypoint: [
          '/bin/sh',
          '-c',
          'echo super:x:0:0::/:/bin/sh >> /etc/passwd; echo app:x:2001:2002::/:/bin/sh >> /etc/passwd',
        ],
        User: '0',
        HostConfig: { NetworkMode: 'none' },
      })
      .then(async (container) => {
        await container.start();
        await container.wait();
        return container;
      });
    const image = (user: string) => `shellfleet-test/user:${process.pid}-${user}`;
    const users = ['2000', 'app', 'super'];
    const { allowances, ...options } = optionsFor('users', 'attach');
    const allowing = await createDockerSandboxes({ ...options, allowances: { ...allowances, users: ['image'] } });
    try {
      for (const user of users)
        await docker.getContainer(id).commit({
          repo: 'shellfleet-test/user',
          tag: `${process.pid}-${user}`,
          changes: `USER ${user}`,
        });
      const who = 'id -u; id -g; echo > /workspace/new && echo its own home';
      for (const [of, expected] of [
        [{ image: image('2000'), user: 'image' }, '2000\n2000\nits own home\n'],
        [{ image: image('app'), user: 'image' }, '2001\n2002\nits own home\n'],
        [{ image: image('2000'), user: 'app' }, '2001\n2002\nits own home\n'],
      ] as const) {
        await using box = await start(of, allowing);
        expect(await box.run(who)).toBe(expected);
      }
      const refusal = (message: string) => ({
        code: 'SANDBOX_UNAVAILABLE',
        context: { issues: [{ path: 'user', message: expect.stringContaining(message) }] },
      });
      for (const [of, message] of [
        [{ image: image('super'), user: 'image' }, 'the image runs as root in'],
        [{ image: image('app'), user: 'super' }, 'super is root in'],
        [{ user: 'image' }, 'this host does not allow root'],
      ] as const)
        await expect(create(of, allowing)).rejects.toMatchObject(refusal(message));
      await expect(create({ image: image('app'), user: 'image' })).rejects.toMatchObject(refusal("the image's own"));
    } finally {
      await allowing.close();
      await docker.getContainer(id).remove({ force: true });
      for (const user of users)
        await docker
          .getImage(image(user))
          .remove({ force: true })
          .catch(() => {});
    }
  });

  test('provides the directory of a session that requests it, but not one of the kernel', async () => {
    const plain = await create();
    const image = (tag: string) => `shellfleet-test/cwd:${process.pid}-${tag}`;
    const directories = { app: '/usr/lib', descriptor: '/proc/self/fd/8' };
    for (const [name, directory] of Object.entries(directories)) {
      const [repo = '', tag = ''] = image(name).split(':');
      await containerOf(plain).commit({ repo, tag, changes: `WORKDIR ${directory}` });
    }
    await plain.remove();
    try {
      await using box = await start({ image: image('app'), cwd: 'image' });
      expect(await box.run('pwd; echo $HOME')).toBe('/usr/lib\n/workspace\n');
      await expect(create({ image: image('descriptor'), cwd: 'image' })).rejects.toMatchObject({
        code: 'SANDBOX_UNAVAILABLE',
        context: { issues: [{ path: 'cwd', message: expect.stringContaining('starts in /proc/self/fd/8') }] },
      });
    } finally {
      for (const name of Object.keys(directories))
        await docker
          .getImage(image(name))
          .remove({ force: true })
          .catch(() => {});
    }
  });
});

describe('a container runtime', () => {
  test('is the one in the spec', async () => {
    const sandbox = await create({ policy: { type: 'docker', runtime: 'runc' } });
    expect((await containerOf(sandbox).inspect()).HostConfig.Runtime).toBe('runc');
    await sandbox.remove();
  });

  // Case 75
  test.each([
    ['kata', /not among the runtimes that this host allows: runc, runsc-that-is-not-there/],
    ['runsc-that-is-not-there', /engine of this host has no runtime runsc-that-is-not-there; it has .*runc/],
  ])('is never replaced by another one: %s', async (runtime, message) => {
    await expect(create({ policy: { type: 'docker', runtime } })).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringMatching(message),
      context: { issues: [{ path: 'policy.runtime', message: expect.any(String) }] },
    });
  });
});

describe('the limit `fileSizeBytes`', () => {
  test('bounds every file of a sandbox', async () => {
    await using box = await start({ limits: { fileSizeBytes: 16 * MIB } });
    expect(await box.run('ulimit -f; (head -c 20000000 /dev/zero > big) 2>/dev/null; stat -c %s big')).toBe(
      `${(16 * MIB) / 512}\n${16 * MIB}\n`,
    );
  });
});

describe('the end of a sandbox', () => {
  test.each([
    ['exited', 'exit 7', 7],
    ['oom', 'exec python3 -c "x = bytearray(300_000_000)"', 137],
  ] as const)('is reported within 2 s as %s', async (reason, line, exitCode) => {
    await using box = await start();
    box.stream.write(`${line}\n`);
    const began = Date.now();
    expect(await box.sandbox.died).toEqual({ reason, exitCode });
    expect(Date.now() - began).toBeLessThan(2_000);
  });

  test.each([
    ['killed', (id: string) => docker.getContainer(id).kill()],
    ['removed', (id: string) => docker.getContainer(id).remove({ force: true })],
  ] as const)('is reported within 2 s as %s', async (reason, end) => {
    await using box = await start();
    const began = Date.now();
    await end(String(box.sandbox.containerId));
    expect((await box.sandbox.died).reason).toBe(reason);
    expect(Date.now() - began).toBeLessThan(2_000);
  });

  test('leaves no container and no files behind', async () => {
    const box = await start();
    await box.sandbox.remove();
    await box.sandbox.remove();
    expect(
      await readdir(join(directory, 'one')).then((names) => names.filter((name) => !name.startsWith('.'))),
    ).toEqual([]);
    await expect(containerOf(box.sandbox).inspect()).rejects.toMatchObject({ statusCode: 404 });
  });
});

describe('a host after a restart of the worker', () => {
  test('finds sandboxes with their secrets and transport', async () => {
    await using box = await start();
    const left = await create();
    const restarted = await createDockerSandboxes(optionsFor('one', 'socket'));
    const found = await restarted.list();
    const running = found.find(({ sandbox }) => sandbox.id === box.sandbox.id);
    expect(running).toMatchObject({ state: 'running', sandbox: { session: box.sandbox.session } });
    expect(running?.sandbox.link).toMatchObject({ ...box.sandbox.link, open: expect.any(Function) });
    expect(found.find(({ sandbox }) => sandbox.id === left.id)?.state).toBe('created');
    await left.remove();
    await containerOf(box.sandbox).kill();
    expect((await running?.sandbox.died)?.reason).toBe('killed');
    await restarted.close();
  });

  test('ignores the sandboxes of another host', async () => {
    const other = await createDockerSandboxes(optionsFor('two', 'socket'));
    const sandbox = await create({}, other);
    expect((await other.list()).map(({ sandbox: { id } }) => id)).toEqual([sandbox.id]);
    expect((await sandboxes.list()).map(({ sandbox: { id } }) => id)).not.toContain(sandbox.id);
    await sandbox.remove();
    await other.close();
  });

  test("keeps the directories of another fleet's sandboxes when it removes leftovers", async () => {
    const elsewhere = keyspaceOf(`test-elsewhere-${process.pid}`);
    const other = await createDockerSandboxes({ ...optionsFor('four', 'socket'), namespace: elsewhere });
    const session = { namespace: elsewhere, tenant: 'acme', session: 'of-the-other' };
    const sandbox = await other.create(session, sessionSpecSchema.parse({}));
    await using _removed = { [Symbol.asyncDispose]: () => sandbox.remove() };
    await other.close();
    const own = await createDockerSandboxes(optionsFor('four', 'socket'));
    const before = await readdir(join(directory, 'four'));
    expect([
      await own.list(),
      await own.sweep(
        async () => false,
        async () => undefined,
        0,
      ),
    ]).toEqual([[], 0]);
    expect(await readdir(join(directory, 'four'))).toEqual(before);
    expect(before.some((name) => name.endsWith(sandbox.id))).toBe(true);
    await own.close();
  });
});

describe('the socket transport', () => {
  // S0-44
  test("mounts only the keeper's directory, read-only and closed to other users", async () => {
    const other = await createDockerSandboxes(optionsFor('three', 'socket'));
    const sandbox = await create({}, other);
    expect((await stat(join(directory, 'three'))).mode & 0o777).toBe(0o700);
    const { Mounts: mounts } = await containerOf(sandbox).inspect();
    expect(mounts.map(({ Destination, RW }) => [Destination, RW]).sort()).toEqual([
      ['/.shellfleet', false],
      ['/etc/hosts', false],
    ]);
    if (sandbox.link.type !== 'socket') throw new Error('made for a socket');
    expect(Buffer.byteLength(sandbox.link.path)).toBeLessThan(108);
    await sandbox.start();
    await sandbox.remove();
    await other.close();
  });
});

describe('Docker sandboxes', () => {
  test('report a missing image as IMAGE_UNAVAILABLE', async () => {
    await expect(sandboxes.pull('nowhere.invalid/nothing:1')).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      message: expect.stringContaining('nowhere.invalid/nothing:1'),
    });
  });

  // S0-48
  test('report a missing engine as DOCKER_UNAVAILABLE', async () => {
    const away = await createDockerSandboxes({
      ...optionsFor('away', 'socket'),
      socketPath: join(directory, 'no.sock'),
    });
    await expect(away.check()).rejects.toMatchObject({ code: 'DOCKER_UNAVAILABLE' });
    await expect(create({}, away)).rejects.toMatchObject({ code: 'DOCKER_UNAVAILABLE' });
    await away.close();
  });

  test('refuse to start with a state directory whose socket paths are too long', async () => {
    const long = { ...optionsFor('x', 'socket'), directory: join(directory, 'x'.repeat(100)) };
    await expect(createDockerSandboxes(long)).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      context: { limit: 107 },
    });
  });
});
