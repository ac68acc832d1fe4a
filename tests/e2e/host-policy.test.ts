import { once } from 'node:events';
import { chmod, chown, copyFile, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Result, SessionSpec } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { filesOf, isRoot, processesOf } from '../support/host-leftovers.ts';
import { reasonToWait } from '../support/reason-to-wait.ts';
import { SessionTerminal } from '../support/session-terminal.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Shells on the host itself, as uid 4711. There is no engine at all here: a worker that offers `host` alone needs none.

const UID = 4711;
const MIB = 2 ** 20;
const host: SessionSpec = { policy: 'host' };
describe.runIf(isRoot)('policy host', () => {
  let stack: TestFleet;
  let shared: string;
  beforeAll(async () => {
    shared = await realpath(await mkdtemp(join(tmpdir(), 'sf-shared-')));
    await chmod(shared, 0o777);
    stack = await startFleet({
      slots: 40,
      env: {
        DOCKER_HOST: 'unix:///nonexistent/docker.sock',
        SHELLFLEET_POLICIES: 'host',
        SHELLFLEET_HOST_USER: String(UID),
        SHELLFLEET_WORKSPACES: shared,
      },
    });
  });
  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
    expect(await processesOf(UID)).toEqual([]);
    await rm(shared, { recursive: true, force: true });
  });

  let sessions = 0;
  const open = (spec: SessionSpec = {}) => stack.fleet.session(`host-${sessions++}`, { ...host, ...spec });

  async function runOnce(script: string, spec: SessionSpec = {}): Promise<Result> {
    const session = await open(spec);
    const result = await session.run(script);
    await session.close();
    return result;
  }

  /** Expects the Result of a command that never ran, with its error. */
  function refused(result: Result, expected: string[]): void {
    expect(result).toMatchObject({ outcome: 'error', exitCode: null, error: { code: 'SANDBOX_UNAVAILABLE' } });
    for (const words of expected) expect(result.error?.message).toContain(words);
  }

  describe('its shell', () => {
    test('keeps state and exact bytes; exit, env, cwd and stdin affect one command only', async () => {
      const session = await open({ env: { A: "it's" } });
      await session.run('kept=yes; fn() { echo "fn $1"; }; cd /tmp; set -- one two; sleep 1000 &');
      expect(await session.run('echo $kept; fn here; pwd; echo $2; echo "$A"; echo oops >&2; (exit 4)')).toEqual(
        expectedResult(session.id, {
          outcome: 'failure',
          exitCode: 4,
          stdout: "yes\nfn here\n/tmp\ntwo\nit's\n",
          stderr: 'oops\n',
          imageDigest: undefined,
          output: expect.any(String) as never,
        }),
      );
      expect(
        await session.run('read -r line; echo "$line $B"', { stdin: 'given\n', env: { B: 'b' }, cwd: '/' }),
      ).toEqual(expectedResult(session.id, { stdout: 'given b\n', imageDigest: undefined }));
      expect(await session.run('exit 3')).toMatchObject({
        outcome: 'failure',
        exitCode: 3,
        shell: { state: 'partial' },
      });
      expect((await session.run('echo $kept "[$B]"; pwd; fn again')).stdout).toBe('yes []\n/tmp\nfn again\n');
      await session.files.write('/workspace/deep/f', 'bytes');
      expect(await session.files.readText('/workspace/deep/f')).toBe('bytes');
      expect((await session.run('head -c 3000000 /dev/zero')).totals.stdoutBytes).toBe(3_000_000);
      await session.close();
    });

    // S0-03, S0-17
    test('keeps output and state at a timeout, and ends the process tree at once', async () => {
      const session = await open();
      await session.run('kept=yes');
      // The shell leads its own process session: field 6 of its stat, the id of that session, equals its pid.
      expect((await session.run('read -r _ _ _ _ _ leader _ < /proc/$$/stat; [ $leader = $$ ]')).exitCode).toBe(0);
      const script = `trap '' TERM INT; echo part; sh -c 'trap "" TERM INT; sleep 8765 & sleep 8765'`;
      expect(await session.run(script, { timeoutMs: 500, killGraceMs: 600 })).toMatchObject({
        outcome: 'timeout',
        reason: 'wall',
        stdout: 'part\n',
      });
      expect((await session.run('pgrep -r D,R,S,T -x sleep; echo $kept')).stdout).toBe('yes\n');
      const running = await session.submit('echo begun; sleep 8765');
      await until(
        async () => (await session.info()).runningCommandId,
        (id) => id === running.id,
      );
      expect(await running.cancel('enough')).toBe(true);
      expect((await running.result()).outcome).toBe('cancellation');
      expect((await session.run('echo $kept')).stdout).toBe('yes\n');
      await session.close();
    });

    // S1-11
    test('runs the EXIT trap and shutdown commands at close, then ends background processes', async () => {
      const session = await open({ workspace: shared, shutdownCommands: ['echo shutdown >> ended'] });
      await session.run('trap "echo trap >> ended" EXIT; (setsid sleep 7654 &); sleep 7654 & true');
      await session.close();
      expect(await readFile(join(shared, 'ended'), 'utf8')).toBe('shutdown\ntrap\n');
      for (const pid of await processesOf(UID))
        expect(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).not.toContain('7654');
    });
  });

  describe('its isolation', () => {
    test('uses another user without capabilities, groups or new privileges, and a clean environment', async () => {
      const script = `id -u; id -g; id -G; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs):' /proc/self/status | tr -d '\\t'
      env | cut -d= -f1 | sort | grep -v '^_$' | tr '\\n' ' '`;
      expect((await runOnce(script)).stdout.split('\n')).toEqual([
        ...['4711', '4711', '4711'],
        ...['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}:0000000000000000`),
        'NoNewPrivs:1',
        'HOME OLDPWD PATH PWD SHLVL ',
      ]);
    });

    // S1-54
    test('shows and signals the session’s own processes alone, never the worker', async () => {
      const worker = stack.workers[0]?.pid;
      const script = `ls -d /proc/[0-9]* | wc -l; kill -0 ${worker} 2>&1; kill -9 -1; kill -9 ${worker} 2>/dev/null; true`;
      const session = await open();
      const seen = await session.run(`ls -d /proc/[0-9]* | wc -l; ls /proc/${worker} 2>&1; kill -0 ${worker} 2>&1`);
      expect(Number(seen.stdout.split('\n')[0])).toBeLessThan(8);
      expect(seen.stdout).toContain('No such');
      await session.run(script);
      expect(process.kill(worker ?? -1, 0)).toBe(true);
      expect((await session.run('echo on')).stdout).toBe('on\n');
      await session.close();
    });

    test('keeps the fleet’s secrets out of every variable, file and process that it shows', async () => {
      const directory = stack.stateDirectory;
      await stat(join(directory, 'hosts'));
      const script = `ls -laR ${directory} 2>&1 | head -5; cat ${directory}/seal-key ${directory}/hosts/*/key 2>&1; ls -la /.shellfleet 2>&1
      cat /.shellfleet/* 2>/dev/null | head -c 100; env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'`;
      const { output } = await runOnce(script);
      expect(output).not.toMatch(/SF_TOKEN|SHELLFLEET_|redis:\/\//i);
      expect(output).not.toContain(stack.sealKey);
      expect(output).toContain('No such file');
    });

    test('offers no set-uid program, mount, namespace or debugger that gives more', async () => {
      const rooted = join(shared, 'rooted');
      await copyFile('/usr/bin/id', rooted);
      await chown(rooted, 0, 0);
      await chmod(rooted, 0o4755);
      const attach = `import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))`;
      const script = `./rooted -u; mount -t tmpfs x /mnt 2>/dev/null && echo escaped; umount /tmp 2>/dev/null && echo escaped
      unshare -Urm sh -c 'umount /tmp /proc /sys/fs/cgroup /workspace /.shellfleet' 2>/dev/null && echo escaped
      (echo 1 > /sys/fs/cgroup/pids/pids.max || echo 1 > /sys/fs/cgroup/pids.max) 2>/dev/null && echo escaped; python3 -c '${attach}'
      touch /x /.shellfleet/x /usr/x 2>/dev/null && echo escaped; mknod /tmp/disk b 254 0 2>/dev/null && echo escaped
      ls /var/run/docker.sock > /dev/null 2>&1 && [ -w /var/run/docker.sock ] && echo escaped; true`;
      expect((await runOnce(script, { workspace: shared })).stdout).toBe('4711\n-1\n');
    });

    // S0-01, S1-39
    test('creates a private workspace where none is named, and removes it with the session', async () => {
      const session = await open();
      expect((await session.run('pwd; stat -c %a:%u:%g .; echo mine > file; echo mine > /tmp/file')).stdout).toBe(
        '/workspace\n700:4711:4711\n',
      );
      const workspace = (await filesOf(stack.stateDirectory)).find((path) => path.includes('/w/shellfleet-'));
      expect(await readFile(join(workspace ?? '', 'file'), 'utf8')).toBe('mine\n');
      const beside = await open();
      expect((await beside.run(`ls -A . /tmp /var/tmp /dev/shm; ls ${workspace} 2>&1; echo on`)).stdout).toMatch(
        /No such file.*\non\n$/,
      );
      await session.close();
      await expect(stat(workspace ?? '')).rejects.toMatchObject({ code: 'ENOENT' });
      await beside.close();
    });

    // S0-20
    test('does not isolate files and network, as documented', async () => {
      const server = createServer((socket) => socket.end('hello from the host\n')).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const script = `cat /etc/passwd | head -1; exec 3<>/dev/tcp/127.0.0.1/${port}; cat <&3; exec 3>&-`;
      expect((await runOnce(script)).stdout).toBe(
        `${(await readFile('/etc/passwd', 'utf8')).split('\n')[0]}\nhello from the host\n`,
      );
      server.close();
    });

    test('leaves no process, directory, workspace or control group behind', async () => {
      const session = await open();
      await session.run('mkdir -p a/b; chmod 000 a; (setsid sleep 6543 &); mkfifo fifo; ln -s / root');
      expect((await filesOf(stack.stateDirectory)).length).toBeGreaterThan(3);
      await session.close();
      await until(
        () => filesOf(stack.stateDirectory),
        (files) => files.length === 0,
      );
      expect((await stat('/bin/sh')).isFile()).toBe(true);
    });

    // S1-39
    test('creates a missing directory below a listed one, for the session’s user', async () => {
      const { stdout } = await runOnce('stat -c %u:%g .; echo > mine', { workspace: join(shared, 'made', 'here') });
      expect(stdout).toBe(`${UID}:${UID}\n`);
      expect((await stat(join(shared, 'made', 'here', 'mine'))).uid).toBe(UID);
    });

    test('uses a directory of the host as workspace only where the operator allows', async () => {
      await writeFile(join(shared, 'from-host'), 'hello');
      expect(await runOnce('cat from-host; echo back > from-sandbox; pwd', { workspace: shared })).toMatchObject({
        outcome: 'success',
        stdout: 'hello/workspace\n',
      });
      expect(await readFile(join(shared, 'from-sandbox'), 'utf8')).toBe('back\n');
      for (const workspace of ['/etc', `${shared}/../..`, '/', stack.stateDirectory])
        expect(await reasonToWait(stack.fleet, `host-${sessions++}`, { ...host, workspace })).toContain(
          'SHELLFLEET_WORKSPACES',
        );
    });
  });

  describe('its limits', () => {
    // S0-13
    test('bind keeper, shell and every child from the first instruction', async () => {
      const script = `for pid in 1 $$ self; do grep -E '^Max (cpu time|file size|core)' /proc/$pid/limits | tr -s ' '; done; (ulimit -t)
      ulimit -t 100 2>/dev/null && echo raised; cd /sys/fs/cgroup; cat pids.max pids/pids.max memory.max memory/memory.limit_in_bytes 2>/dev/null`;
      const { stdout } = await runOnce(script, {
        limits: { cpuTimeSeconds: 20, memoryBytes: 64 * MIB, pids: 32, fileSizeBytes: 16 * MIB },
      });
      const each = [
        'Max cpu time 20 20 seconds ',
        `Max file size ${16 * MIB} ${16 * MIB} bytes `,
        'Max core file size 0 0 bytes ',
      ];
      expect(stdout.split('\n')).toEqual([...each, ...each, ...each, '20', '32', String(64 * MIB), '']);
    });

    // S0-14
    test('end the process that used up its CPU seconds, and the session goes on', async () => {
      const session = await open({ limits: { cpuTimeSeconds: 1 } });
      await session.run('kept=yes');
      expect(await session.run("python3 -c 'while True: pass'")).toMatchObject({ outcome: 'failure', exitCode: 137 });
      expect((await session.run('echo $kept')).stdout).toBe('yes\n');
      await session.close();
    });

    test('stop every file at its size, whether a command or a file operation writes', async () => {
      const session = await open({ limits: { fileSizeBytes: 16 * MIB } });
      const write = await session.run('(head -c 20000000 /dev/zero > big) 2>/dev/null; stat -c %s big');
      expect(write.stdout).toBe(`${16 * MIB}\n`);
      await expect(session.files.write('/workspace/sent', Buffer.alloc(17 * MIB))).rejects.toMatchObject({
        code: expect.stringMatching(/^FILE_/),
      });
      expect((await session.run('echo on')).stdout).toBe('on\n');
      await session.close();
    });

    // S0-13
    test('bound the memory of the whole session, and the Result reports that it ran out', async () => {
      const session = await open({ limits: { memoryBytes: 64 * MIB } });
      await session.run('kept=yes');
      expect(await session.run(`echo before; python3 -c 'x = bytearray(200 * 2**20)'`)).toMatchObject({
        outcome: 'failure',
        exitCode: 137,
        reason: 'oom',
        stdout: 'before\n',
        shell: { state: 'kept', epoch: 1 },
      });
      expect((await session.run('echo $kept')).stdout).toBe('yes\n');
      await session.close();
    });

    test('keep a fork bomb in its session, and others go on', async () => {
      const session = await open({ limits: { pids: 64 } });
      const beside = await open();
      const [, other] = await Promise.all([
        session.run(':(){ :|:& };:', { timeoutMs: 3_000 }),
        beside.run('for i in $(seq 1 50); do sh -c true || exit 1; done; echo fine'),
      ]);
      const denied = () => session.run('cat /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events 2>/dev/null');
      await until(denied, ({ stdout }) => /^max [1-9]/m.test(stdout));
      expect(other).toMatchObject({ outcome: 'success', stdout: 'fine\n' });
      await Promise.all([session.close(), beside.close()]);
    });

    test('apply to every session whose spec has none', async () => {
      const script = `cd /sys/fs/cgroup; cat memory.max memory/memory.limit_in_bytes pids.max pids/pids.max 2>/dev/null
      cat cpu.max cpu/cpu.cfs_quota_us 2>/dev/null | cut -d' ' -f1; ulimit -v`;
      expect((await runOnce(script)).stdout).toBe(`${512 * MIB}\n256\n100000\nunlimited\n`);
    });

    test.each([
      [{ limits: { cpus: 1_000 } }, 'limits.cpus'],
      [{ limits: { memoryBytes: 2 ** 49 } }, 'limits.memoryBytes'],
    ] satisfies [SessionSpec, string][])(
      'make a session wait by name for what no host has: %o',
      async (spec, field) => {
        expect(await reasonToWait(stack.fleet, `host-${sessions++}`, { ...host, ...spec })).toContain(`${field}: `);
      },
    );

    test.each([
      [{ limits: { diskBytes: 2 ** 30 } }, 'limits.diskBytes'],
      [{ cwd: '/proc/self/fd/7' }, 'cwd'],
    ] satisfies [SessionSpec, string][])(
      'are refused by name where the host cannot enforce them: %o',
      async (spec, field) => {
        refused(await runOnce('echo never', spec), [field]);
      },
    );
  });

  describe('its sessions', () => {
    // S0-06, S0-10, S0-11
    test.each([
      [{ image: 'debian:12' }, 'image'],
      [{ user: '1000:1000' }, 'user'],
      [{ policy: { type: 'host', readOnlyRootfs: true } as never }, 'policy.readOnlyRootfs'],
      [{ limits: { cpuTimeSeconds: 0 } }, 'limits.cpuTimeSeconds: must be positive if provided'],
      [{ limits: { memoryBytes: 0 } }, 'limits.memoryBytes: must be positive if provided'],
      [{ output: { maxLines: 0 } }, 'output.maxLines: must be positive'],
    ] satisfies [SessionSpec, string][])(
      'are refused at once with options that have no meaning here: %o',
      async (spec, expected) => {
        await expect(stack.fleet.session('never', { ...host, ...spec })).rejects.toMatchObject({
          code: 'SESSION_SPEC_INVALID',
          message: expect.stringContaining(expected),
        });
      },
    );

    // S1-31
    test('get docker when they name no policy; without docker they wait and list the offers', async () => {
      const session = await stack.fleet.session('docker-on-host');
      const waits = await session.submit('echo never', { startDeadlineMs: 1_000 });
      const { state, noHostReason } = await session.info();
      expect({ state, noHostReason }).toEqual({
        state: 'queued',
        noHostReason:
          "No live host offers the policy 'docker'; they offer 'host'. The operator of a host lists what it offers in SHELLFLEET_POLICIES.",
      });
      expect(await waits.result()).toMatchObject({ outcome: 'timeout', exitCode: null, hostId: null, stdout: '' });
      await session.close();
      expect((await stack.fleet.hosts()).map(({ policies }) => policies)).toEqual([['host']]);
    });
  });

  test('can open a terminal as the user of its shell', async () => {
    const session = await open();
    await session.run('cd /tmp');
    await using terminal = await session.attach({ rows: 31, cols: 97 });
    const person = new SessionTerminal(terminal);
    await person.type('echo "$(id -u) $(pwd) $(stty size)"\n');
    await person.sees(`${UID} /tmp 31 97`);
  });
});
