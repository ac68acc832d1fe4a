import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdir, mkdtemp, readFile, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keeperPath, launcherPath } from '@shellfleet/keeper';
import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { createHostSandboxes, type HostSandboxesOptions, type Sandbox, type Sandboxes } from '@shellfleet/worker';
import { listenForKeeper, openKeeperShell } from '@shellfleet/worker/shell';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { filesIn, isRoot, keeperOf, processesOf } from '../support/host-leftovers.ts';
import { ShellClient } from '../support/shell-client.ts';
import { until } from '../support/until.ts';

const UID = 4715;
const MIB = 2 ** 20;
const namespace = `test-host-${process.pid}`;
describe.runIf(isRoot)('host sandboxes', () => {
  let directory: string;
  let options: HostSandboxesOptions;
  let sandboxes: Sandboxes;
  /** Sandboxes of a host without control groups for its worker. */
  let ungrouped: Sandboxes;
  const made: Sandbox[] = [];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'host-'));
    options = {
      namespace,
      hostKey: Buffer.alloc(32, 7),
      directory: join(directory, 'one'),
      keeperPath: await keeperPath(),
      launcherPath: await launcherPath(),
      user: { user: String(UID), sharedUid: false },
      workspaces: [],
      bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
      controlGroups: { top: '/sys/fs/cgroup', below: `shellfleet/${namespace}` },
      hidden: [directory],
      sockets: [],
    };
    sandboxes = await createHostSandboxes(options);
    const elsewhere = {
      directory: join(directory, 'two'),
      controlGroups: { top: join(directory, 'none'), below: 'ours' },
    };
    ungrouped = await createHostSandboxes({ ...options, ...elsewhere });
  });
  afterEach(async () => {
    for (const sandbox of made.splice(0)) await sandbox.remove();
    expect([await processesOf(UID), await filesIn(directory)]).toEqual([[], []]);
  });
  afterAll(async () => {
    await sandboxes.close();
    await ungrouped.close();
    await rm(directory, { recursive: true });
  });

  let sessions = 0;
  async function create(spec: SessionSpec = {}, from = sandboxes): Promise<Sandbox> {
    const session = { namespace, tenant: 'acme', session: `s${sessions++}` };
    const sandbox = await from.create(session, sessionSpecSchema.parse({ policy: 'host', ...spec }));
    made.push(sandbox);
    return sandbox;
  }

  async function start(spec: SessionSpec = {}, from = sandboxes): Promise<{ sandbox: Sandbox; client: ShellClient }> {
    const sandbox = await create(spec, from);
    if (sandbox.link.type !== 'socket') throw new Error('the keeper of a host shell dials a socket');
    const { path, token } = sandbox.link;
    const listener = await listenForKeeper({ path, token });
    await sandbox.start();
    const transport = await listener.accept({ signal: AbortSignal.timeout(10_000) });
    const shell = await openKeeperShell({ transport, fence: 1, token, signal: AbortSignal.timeout(10_000) });
    listener.close();
    return { sandbox, client: new ShellClient(shell) };
  }

  const limitsOf = async (pid: number | string) =>
    (await readFile(`/proc/${pid}/limits`, 'utf8')).split('\n').filter((line) => !/core file size/.test(line));

  describe('the end of a sandbox', () => {
    test.each([
      ['exited', async ({ client }) => client.shell.end({ terminationTimeoutMs: 2_000 }), 0],
      ['killed', async () => process.kill(await keeperOf(UID), 'SIGKILL'), null],
    ] satisfies [string, (box: { client: ShellClient }) => Promise<unknown>, number | null][])(
      'is reported within 2 s as %s',
      async (reason, end, exitCode) => {
        const box = await start();
        const began = Date.now();
        await end(box);
        expect(await box.sandbox.died).toEqual({ reason, exitCode });
        expect(Date.now() - began).toBeLessThan(2_000);
      },
    );

    test('has one cause even if the removal is requested twice', async () => {
      const { sandbox } = await start();
      await sandbox.remove();
      await sandbox.remove();
      expect(await sandbox.died).toEqual({ reason: 'removed', exitCode: null });
    });
  });

  describe('a host after a restart of the worker', () => {
    test('finds running shells with their secrets, and lists unstarted ones apart', async () => {
      const box = await start();
      const left = await create();
      await box.client.run('kept=yes');
      const restarted = await createHostSandboxes(options);
      const found = await restarted.list();
      const running = found.find(({ sandbox }) => sandbox.id === box.sandbox.id);
      expect(running).toMatchObject({
        state: 'running',
        sandbox: { session: box.sandbox.session, link: box.sandbox.link, createdAt: box.sandbox.createdAt },
      });
      expect(found.find(({ sandbox }) => sandbox.id === left.id)?.state).toBe('created');
      await running?.sandbox.remove();
      expect((await box.sandbox.died).reason).toBe('killed');
      await restarted.close();
    });

    test('does not kill another process that has the pid of a keeper by now', async () => {
      const sandbox = await create();
      const innocent = spawn('sleep', ['60']);
      const [name] = (await filesIn(directory)).filter((path) => path.includes('/r/'));
      await writeFile(join(name ?? '', 'process'), `${innocent.pid} 1 ${innocent.pid} 1\n`);
      expect((await sandboxes.list()).map(({ state }) => state)).toEqual(['dead']);
      await sandbox.remove();
      expect(innocent.exitCode ?? innocent.signalCode).toBeNull();
      innocent.kill();
    });

    test('removes incomplete sandboxes after a crash, but not those of other namespaces', async () => {
      const other = { ...options, namespace: `${namespace}-other` };
      const theirs = await createHostSandboxes(other);
      const spec = sessionSpecSchema.parse({ policy: 'host' });
      const kept = await theirs.create({ namespace: other.namespace, tenant: 'acme', session: 'kept' }, spec);
      const before = await filesIn(directory);
      await mkdir(join(options.directory, 'r/0123456789ab-0123456789ab'));
      await mkdir(join(options.directory, 's/0123456789ab-0123456789ab'));
      await mkdir(join(options.directory, 'w/shellfleet-0123456789ab-0123456789ab/deep'), { recursive: true });
      expect(await sandboxes.list()).toEqual([]);
      expect(await filesIn(directory)).toEqual(before);
      expect((await theirs.list()).map(({ sandbox }) => sandbox.id)).toEqual([kept.id]);
      await kept.remove();
    });
  });

  describe('limits of the sandbox', () => {
    // S0-15
    test('are absent if none is requested or possible, apart from the limit of core dumps', async () => {
      const { client } = await start({}, ungrouped);
      expect(
        (await client.run('cat /proc/1/limits')).out.split('\n').filter((line) => !/core file/.test(line)),
      ).toEqual(await limitsOf('self'));
      const { out, end } = await client.run('ulimit -c; ls -A /sys/fs/cgroup');
      expect(out).toBe('0\n');
      expect(end.usage).toBeUndefined();
    });

    // S0-14
    test('bound the memory of each process where control groups are missing', async () => {
      const { client } = await start({ limits: { memoryBytes: 256 * MIB } }, ungrouped);
      expect((await client.run('ulimit -v; (ulimit -v)')).out).toBe('262144\n262144\n');
      const tooMuch = await client.run(`python3 -c 'x = bytearray(300 * 2**20)'`);
      expect([tooMuch.code, tooMuch.err]).toEqual([1, expect.stringContaining('MemoryError')]);
    });

    // S0-19
    test('are refused if only missing control groups could apply them', async () => {
      await expect(create({ limits: { cpus: 1, pids: 100 } }, ungrouped)).rejects.toMatchObject({
        code: 'SANDBOX_UNAVAILABLE',
        message: expect.stringMatching(/limits\.cpus: .*no control group.*limits\.pids: /),
      });
    });

    // S0-16
    test('prevent the start if one cannot be applied, and the error names it', async () => {
      const sandbox = await create();
      const all = await filesIn(directory, options.controlGroups.below);
      const groups = all.filter((path) => path.startsWith('/sys'));
      expect(groups.length).toBeGreaterThan(0);
      for (const group of groups) await rmdir(group);
      await expect(sandbox.start()).rejects.toMatchObject({
        code: 'SANDBOX_UNAVAILABLE',
        message: expect.stringMatching(/cgroup\.procs: No such file or directory/),
      });
      expect(await processesOf(UID)).toEqual([]);
      expect((await sandboxes.list()).map(({ state }) => state)).toEqual(['created']);
    });
  });

  test('do not start if their workspace became a link after the check', async () => {
    const allowed = join(directory, 'allowed');
    await mkdir(join(allowed, 'project'), { recursive: true });
    const wider = await createHostSandboxes({ ...options, workspaces: [allowed] });
    const sandbox = await create({ workspace: join(allowed, 'project') }, wider);
    await rmdir(join(allowed, 'project'));
    await symlink('/etc', join(allowed, 'project'));
    await expect(sandbox.start()).rejects.toMatchObject({
      message: expect.stringMatching(/opening the workspace .*: Too many levels of symbolic links/),
    });
  });

  describe('a state directory behind an absolute link', () => {
    let place: string;
    let hidden: string;

    beforeAll(async () => {
      // The directory is not below /tmp, which is private to every session.
      place = await mkdtemp('/opt/host-');
      await chmod(place, 0o755);
      await mkdir(join(place, 'real', 'state'), { recursive: true });
      await writeFile(join(place, 'real', 'state', 'seal-key'), 'key');
      await symlink(join(place, 'real'), join(place, 'link'));
      hidden = join(place, 'link', 'state');
    });
    afterAll(() => rm(place, { recursive: true }));

    test('is hidden under both paths', async () => {
      const hiding = await createHostSandboxes({ ...options, hidden: [hidden] });
      await hiding.check();
      const { client } = await start({}, hiding);
      const { stdout } = await client.run(`cat ${hidden}/seal-key ${place}/real/state/seal-key; echo looked`);
      expect(stdout.toString()).toBe('looked\n');
    });

    test('makes the policy unavailable if it is not hidden', async () => {
      const launcherPath = join(place, 'hides-nothing');
      const lines = ['#!/bin/bash', 'args=()', 'while [ $# -gt 0 ]; do'];
      lines.push('  if [ "$1" = --hide ]; then shift; else args+=("$1"); fi; shift', 'done');
      await writeFile(launcherPath, [...lines, `exec ${options.launcherPath} "${'$'}{args[@]}"`].join('\n'), {
        mode: 0o755,
      });
      const hiding = await createHostSandboxes({ ...options, hidden: [hidden], launcherPath });
      await expect(hiding.check()).rejects.toMatchObject({
        code: 'SANDBOX_UNAVAILABLE',
        message: expect.stringMatching(/its user can open the state directory/),
      });
    });
  });

  test("show their session no keys of the worker's key ring", async () => {
    const [join_, add] = process.arch === 'x64' ? [250, 248] : [219, 217];
    const plant = `import ctypes, os, sys; call = ctypes.CDLL(None).syscall
call(${join_}, 1, 0); call(${add}, b"user", b"planted", b"secret", 6, -3); os.execv(sys.argv[1], sys.argv[1:])`;
    const place = await mkdtemp(join(tmpdir(), 'keys-'));
    await chown(place, UID, UID);
    const files = ['--process', join(place, '.process'), '--ended', join(place, '.ended'), '--workspace', place];
    const args = [...files, '--user', `${UID}:${UID}`, '--scratch-bytes', '1048576', '--', '/bin/sh', '-c'];
    const look = 'cat /proc/keys > keys; echo looked >> keys';
    const child = spawn('python3', ['-c', plant, options.launcherPath, ...args, look], { stdio: 'ignore' });
    expect(await once(child, 'exit')).toEqual([0, null]);
    const keys = await readFile(join(place, 'keys'), 'utf8');
    expect([keys.includes('planted'), keys.includes('looked')]).toEqual([false, true]);
    await rm(place, { recursive: true });
  });

  describe('an unsuitable user', () => {
    test.each([
      ['root', /never run as root/],
      ['no-such-user', /no user no-such-user/],
    ])('is refused at the start with the reason: %s', async (user, reason) => {
      await expect(createHostSandboxes({ ...options, user: { user, sharedUid: true } })).rejects.toMatchObject({
        code: 'SANDBOX_UNAVAILABLE',
        message: expect.stringMatching(reason),
      });
    });

    test('is refused in a trial, which leaves nothing, for access to the engine’s socket', async () => {
      const socket = join(directory, '..', `engine-${process.pid}.sock`);
      const place = await mkdtemp('/var/lib/sf-test-');
      await chmod(place, 0o755);
      await writeFile(join(place, 'socket'), '');
      await chmod(join(place, 'socket'), 0o666);
      const reached = await createHostSandboxes({ ...options, sockets: [socket, join(place, 'socket')] });
      await expect(reached.check()).rejects.toMatchObject({ message: expect.stringContaining('Docker socket') });
      await chmod(join(place, 'socket'), 0o660);
      await reached.check();
      await rm(place, { recursive: true });
    });
  });

  describe('a launcher without root', () => {
    const ended: ChildProcess[] = [];
    afterAll(() => {
      for (const child of ended) child.kill();
    });

    /** Starts the launcher as another user, in a directory of that user. */
    async function launchAs(uid: number, args: string[], script: string) {
      const place = await mkdtemp(join(tmpdir(), 'launch-'));
      await copyFile(await launcherPath(), join(place, 'launch'));
      await mkdir(join(place, 'workspace'));
      for (const path of [place, join(place, 'launch'), join(place, 'workspace')]) await chown(path, uid, uid);
      const files = ['--process', join(place, 'process'), '--ended', join(place, 'ended')];
      const rest = ['--workspace', join(place, 'workspace'), '--scratch-bytes', '1048576'];
      const child = spawn(join(place, 'launch'), [...files, ...args, ...rest, '--', '/bin/sh', '-c', script], {
        uid,
        gid: uid,
      });
      ended.push(child);
      let said = '';
      child.stderr.on('data', (data) => {
        said += String(data);
      });
      const [code] = await once(child, 'exit');
      const out = await readFile(join(place, 'workspace/out'), 'utf8').catch(() => '');
      await rm(place, { recursive: true });
      return { code, said, out };
    }

    test('runs a session in a user namespace, as the same user without privileges', async () => {
      const script = `exec > out 2>&1; id -u; echo $$; grep -c . /proc/self/mounts > /dev/null && grep -E '^(CapEff|CapBnd|NoNewPrivs):' /proc/self/status
      ls /etc 2>&1 | tail -1; umount /etc 2> /dev/null && echo escaped; setpriv --reuid 0 true 2> /dev/null && echo escaped; true`;
      const { code, said, out } = await launchAs(
        UID,
        ['--user', `${UID}:${UID}`, '--same-user', '--hide', '/etc'],
        script,
      );
      expect([code, said]).toEqual([0, '']);
      expect(out.replaceAll('\t', '').split('\n')).toEqual([
        String(UID),
        '1',
        'CapEff:0000000000000000',
        'CapBnd:0000000000000000',
        'NoNewPrivs:1',
        expect.stringMatching(/Permission denied|cannot open/),
        '',
      ]);
    });

    test('starts nothing as another user or without namespaces', async () => {
      const { code, said } = await launchAs(UID, ['--user', '4716:4716'], 'true');
      expect([code, said]).toEqual([1, expect.stringMatching(/^making namespaces .*: Operation not permitted\n$/)]);
      const asRoot = await launchAs(UID, ['--user', '0:0', '--same-user'], 'true');
      expect([asRoot.code, asRoot.said]).toEqual([1, expect.stringContaining('not a user without privileges')]);
    });
  });

  // S1-54
  test('keep processes after the end of their starter, and end them together', async () => {
    const { sandbox, client } = await start();
    await client.run('(setsid sleep 3456 &) ; sleep 3456 & true');
    const all = await processesOf(UID);
    expect(all.length).toBeGreaterThanOrEqual(4);
    for (const pid of all) {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      expect(Number(/^PPid:\s+(\d+)/m.exec(status)?.[1])).not.toBe(process.pid);
    }
    await sandbox.remove();
    await until(
      () => processesOf(UID),
      (left) => left.length === 0,
    );
  });
});
