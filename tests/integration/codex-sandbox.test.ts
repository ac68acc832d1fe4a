import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { launcherPath } from '@shellfleet/keeper';
import { sessionSpecSchema } from '@shellfleet/protocol';
import { createHostSandboxes, openCodex } from '@shellfleet/worker';
import { ulid } from 'ulid';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type BoxesInEnclosure, type BoxInEnclosure, openBoxesInEnclosure } from '../support/boxes-in-enclosure.ts';
import { openOutside, promisesOf, tryToEscape } from '../support/escape-probes.ts';
import { isRoot, processesOf } from '../support/host-leftovers.ts';
import { installCodex } from '../support/install-codex.ts';
import { KeeperTerminal } from '../support/keeper-terminal.ts';
import { until } from '../support/until.ts';

// Tests with the real Codex CLI, which is fetched from npm on the first run.

const UID = 4720;
describe.runIf(isRoot)('the codex policy', () => {
  let boxes: BoxesInEnclosure;
  let shared: BoxInEnclosure;
  let codex: string;
  beforeAll(async () => {
    codex = await installCodex();
    boxes = await openBoxesInEnclosure(UID, () => openCodex({ program: codex }));
    shared = await boxes.start();
  }, 300_000);
  afterAll(() => boxes?.close());
  const run = (script: string) => shared.client.run(script);

  // S0-26
  test('is available on this machine, and names what to install without Codex', async () => {
    await boxes.sandboxes.check();
    await expect(openCodex({ directories: '/nonexistent' })).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('npm install --global @openai/codex, or name its path in SHELLFLEET_CODEX'),
    });
    await expect(openCodex({ program: '/nonexistent/codex' })).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('/nonexistent/codex does not run'),
    });
    await expect(openCodex({ program: '/bin/true' })).rejects.toMatchObject({
      message: expect.stringContaining('sandbox --help` names no way to run a command'),
    });
  });

  // S0-24
  test('is refused on a platform without a sandbox of Codex', async () => {
    await expect(openCodex({ program: codex, platform: 'darwin' })).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('it needs Linux, and this host has darwin'),
    });
  });

  // S0-28
  test('is refused with the error of Codex where the kernel lacks what Codex needs', async () => {
    const directory = await mkdtemp(join(dirname(dirname(dirname(codex))), 'lacks-'));
    const program = join(directory, 'codex');
    const help = `Usage: codex sandbox [OPTIONS] [COMMAND]...`;
    const refusal = 'error: the kernel has no Landlock';
    await writeFile(program, `#!/bin/sh\n[ "$2" = --help ] && echo '${help}' && exit\necho '${refusal}' >&2; exit 1\n`);
    await chmod(directory, 0o755);
    await chmod(program, 0o755);
    const lacking = await createHostSandboxes({ ...boxes.options, enclosure: await openCodex({ program }) });
    try {
      await expect(lacking.check()).rejects.toMatchObject({
        code: 'SANDBOX_UNAVAILABLE',
        message: expect.stringContaining(refusal),
      });
    } finally {
      await lacking.close();
      await rm(directory, { recursive: true });
    }
  });

  describe('a shell in the sandbox', () => {
    test('keeps state, files and background processes, and has input and terminals', async () => {
      const { client } = await boxes.start();
      await client.run('kept=yes; cd /tmp; sleep 1000 &');
      expect((await client.run('exit 3')).code).toBe(3);
      expect((await client.run('echo $kept; pwd; echo oops >&2; (exit 4)')).out).toBe('yes\n/tmp\n');
      expect((await client.run('cat', { stdin: Buffer.from('given') })).out).toBe('given');
      const { stdout, end } = await client.run('head -c 3000000 /dev/zero');
      expect(stdout.length).toBe(3_000_000);
      expect(end.usage?.peakMemoryBytes).toBeGreaterThan(2 ** 16);
      await client.run('echo text > /workspace/file');
      const terminal = new KeeperTerminal(client.shell);
      terminal.type('cat /workspace/file; tty\n');
      await until(
        () => terminal.shown,
        (shown) => /text\r\n\/dev\/pts\/\d/.test(shown),
      );
    });

    test('survives a timeout, which ends the whole process tree with its orphans', async () => {
      const { client } = await boxes.start();
      await client.run('kept=yes');
      const script = `trap '' TERM INT; (setsid sleep 8765 &); sh -c 'trap "" TERM INT; sleep 8765 & sleep 8765'`;
      expect((await client.run(script, { timeoutMs: 300, killGraceMs: 300 })).end.reason).toBe('wall');
      expect((await client.run('pgrep -r D,R,S,T -x sleep; echo $kept')).out).toBe('yes\n');
    });
  });

  describe('a session', () => {
    test('can write only to /workspace and /tmp, and to neither in `read-only`', async () => {
      const writes = await run(
        'echo w > /workspace/f; echo t > /tmp/t; cat /workspace/f /tmp/t; touch /usr/f /etc/f /var/f',
      );
      expect([writes.out, writes.code]).toEqual(['w\nt\n', 1]);
      expect(writes.err.match(/Read-only file system/g)).toHaveLength(3);
      const { client } = await boxes.start({ sandbox: { mode: 'read-only' } });
      const reads = await client.run('touch /workspace/f; touch /tmp/f; cat /etc/hostname >/dev/null && echo read');
      expect([reads.out, reads.err.match(/Read-only file system/g)?.length]).toEqual(['read\n', 2]);
    });

    // S0-27
    test('receives no variables from the environment of the worker', async () => {
      process.env.OF_THE_WORKER = 'x';
      const { client } = await boxes.start();
      delete process.env.OF_THE_WORKER;
      const { out } = await client.run(`env | cut -d= -f1 | sort | tr '\\n' ' '`);
      expect(out).toBe('CODEX_HOME CODEX_SANDBOX_NETWORK_DISABLED HOME PATH PWD SHLVL _ ');
    });

    // S0-21
    test('uses the operator’s settings of Codex, which its own settings override', async () => {
      const exclude = 'sandbox_workspace_write.exclude_slash_tmp';
      const enclosure = await openCodex({
        program: codex,
        configOverrides: { [exclude]: false, model: 'of-the-operator' },
      });
      const programOf = (configOverrides: Record<string, unknown>) => {
        const spec = sessionSpecSchema.parse({ policy: { type: 'codex', configOverrides } });
        const bounds = { ...boxes.options.bounds, diskQuota: false };
        return enclosure.plan(spec, { ...boxes.options, bounds, controlGroups: true }).program;
      };
      const common = ['-c', 'model="of-the-operator"', '-c', 'sandbox_mode="workspace-write"'];
      const network = ['-c', 'sandbox_workspace_write.network_access=false', '--'];
      const settings = (value: boolean) => [...common, '-c', `${exclude}=${value}`, ...network];
      expect(programOf({}).slice(-settings(false).length)).toEqual(settings(false));
      expect(programOf({ [exclude]: true }).slice(-settings(true).length)).toEqual(settings(true));
    });

    // S0-23
    test('passes an override in its spec to Codex', async () => {
      const configOverrides = { 'sandbox_workspace_write.exclude_slash_tmp': true };
      const { client } = await boxes.start({ policy: { type: 'codex', configOverrides } });
      const { err } = await client.run('touch /workspace/f /tmp/f');
      expect(err).toMatch(/^touch: cannot touch '\/tmp\/f': Read-only file system\n$/);
    });

    test('can open no socket of any kind and has no network', async () => {
      const server = createServer();
      await once(server.listen(0), 'listening');
      const port = (server.address() as { port: number }).port;
      const script = `import socket
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 17, 40):
    try:
        socket.socket(family, socket.SOCK_STREAM)
        print(family)
    except OSError as error:
        print(error.errno)`;
      const { out } = await shared.client.run('python3 -', { stdin: Buffer.from(script) });
      expect(
        out
          .trim()
          .split('\n')
          .every((errno) => ['1', '13', '97'].includes(errno)),
      ).toBe(true);
      expect((await run(`exec 3<>/dev/tcp/127.0.0.1/${port}`)).code).not.toBe(0);
      server.close();
    });

    test('has no privileges, and cannot read its token or reach sockets or CODEX_HOME', async () => {
      const { out } = await run(`grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'
        cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c SF_TOKEN
        for fd in /proc/1/fd/0 /proc/1/fd/1; do (echo forged >$fd) 2>/dev/null && echo opened; done
        touch /.shellfleet-run/codex/x 2>/dev/null && echo wrote; env | grep -c SF_; echo $HOME`);
      expect(out.split('\n')).toEqual([
        'CapEff:0000000000000000',
        'NoNewPrivs:1',
        'Seccomp:2',
        '0',
        '0',
        '/workspace',
        '',
      ]);
    });
  });

  test('adopts the running shells and their state after a restart of the worker', async () => {
    const { sandbox, client } = await boxes.start();
    await client.run('kept=yes; fn() { echo "fn $1"; }');
    const restarted = await createHostSandboxes(boxes.options);
    const found = (await restarted.list()).find(({ sandbox: { id } }) => id === sandbox.id);
    expect(found).toMatchObject({ state: 'running', sandbox: { session: sandbox.session } });
    if (found === undefined) throw new Error('it was not found');
    const next = await boxes.connect(found.sandbox, 2);
    expect((await next.run('echo $kept; fn here')).out).toBe('yes\nfn here\n');
    await restarted.close();
  });

  // S3-25
  test("runs a second, wider sandbox in the workspace, which no worker takes for a session's", async () => {
    const own = await boxes.start({ sandbox: { mode: 'read-only' } });
    const outer = sessionSpecSchema.parse({ policy: 'codex', sandbox: { mode: 'workspace-write', network: 'full' } });
    const allowances = { modes: ['workspace-write' as const], networks: ['full' as const], hosts: [] };
    const beside = { sandboxId: own.sandbox.id, allowances };
    const sandbox = await boxes.sandboxes.create(own.sandbox.session, outer, { beside });
    try {
      const wide = await boxes.connect(sandbox, 1, true);
      expect((await own.client.run('touch here')).err).toMatch(/Read-only file system/);
      expect(await wide.run('pwd; echo wide >here')).toMatchObject({ code: 0, out: '/workspace\n' });
      expect((await own.client.run('cat here')).out).toBe('wide\n');
      const server = createServer((client) => client.end('reached'));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const reach = `exec 3<>/dev/tcp/127.0.0.1/${(server.address() as AddressInfo).port} && cat <&3`;
      expect((await own.client.run(`(${reach})`)).code).not.toBe(0);
      expect((await wide.run(`(${reach})`)).out).toBe('reached');
      server.close();
      // The next worker finds the sandboxes of its sessions by this call.
      const next = await createHostSandboxes(boxes.options);
      const found = await next.list();
      await next.close();
      const states = found.map(({ sandbox: { id }, state }) => [id, state]);
      expect(states).toContainEqual([own.sandbox.id, 'running']);
      expect(states).toContainEqual([sandbox.id, 'beside']);
    } finally {
      await sandbox.remove();
    }
    expect(await boxes.filesOf(sandbox)).toEqual([]);
    expect((await own.client.run('cat here')).out).toBe('wide\n');
  });

  test('works for a worker without root, as the worker’s own user', async () => {
    const place = await mkdtemp(join(tmpdir(), 'sf-launch-'));
    const own = (name: string) => join(place, name);
    await copyFile(await launcherPath(), own('launch'));
    await mkdir(own('workspace'));
    for (const path of [place, own('launch'), own('workspace')]) await chown(path, UID, UID);
    const enclosure = await openCodex({ program: codex });
    const bounds = { memoryBytes: 2 ** 40, cpus: 64, pids: 4096, diskQuota: false };
    const spec = sessionSpecSchema.parse({ policy: 'codex' });
    const { program } = enclosure.plan(spec, { workspaces: [], bounds, controlGroups: false });
    const files = ['--process', own('process'), '--ended', own('ended'), '--workspace', own('workspace')];
    const user = ['--user', `${UID}:${UID}`, '--same-user', '--scratch-bytes', '8388608', '--show-errors'];
    const script = `exec > out; id -u; grep -E '^(CapEff|Seccomp):' /proc/self/status | tr -d '\\t'; touch /usr/f || echo refused`;
    const args = [...files, ...user, '--', ...program, '/bin/sh', '-c', script];
    const env = { PATH: '/usr/bin:/bin', HOME: '/workspace', ...enclosure.env };
    const child = spawn(own('launch'), args, { uid: UID, gid: UID, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    child.stderr.on('data', (data) => {
      said += String(data);
    });
    await once(child, 'close');
    expect(said).toMatch(/^touch: cannot touch '\/usr\/f': Read-only file system\n$/);
    expect(await readFile(own('workspace/out'), 'utf8')).toBe(`${UID}\nCapEff:0000000000000000\nSeccomp:2\nrefused\n`);
    await rm(place, { recursive: true });
  });

  test('keeps the output of a command until the next worker comes', async () => {
    const { sandbox, client } = await boxes.start();
    const entryId = ulid();
    const script = `echo before; until [ -e go ]; do sleep 0.05; done; head -c 300000 /dev/zero | tr '\\0' x; echo; echo after`;
    const running = client.run(script, { entryId, timeoutMs: 60_000 }).catch(() => undefined);
    await until(
      async () => client.received('stdout').toString(),
      (text) => text === 'before\n',
    );
    client.shell.disconnect();
    void running;
    const workspace = (await boxes.filesOf(sandbox)).find((path) => path.includes('/w/'));
    await writeFile(join(workspace ?? '', 'go'), '');
    const next = await boxes.connect(sandbox, 2);
    const rest = await next.resume(entryId, { stdout: 7, stderr: 0 });
    expect([rest.code, rest.out]).toEqual([0, `${'x'.repeat(300_000)}\nafter\n`]);
  });

  test('blocks those ways out of a sandbox that the documentation lists as blocked', async () => {
    await using outside = await openOutside({
      sockets: [inject('dockerHost').replace('unix://', '')],
      processes: ['shellfleet-launch', 'vitest'],
      secrets: ['NODE_COMPILE_CACHE='],
    });
    const run = async (script: string, { stdin }: { stdin: string }) => {
      const { out, err, code } = await shared.client.run(script, { stdin: Buffer.from(stdin), timeoutMs: 60_000 });
      return { stdout: out, stderr: err, outcome: code === 0 ? 'success' : 'failure' };
    };
    const reached = await tryToEscape({ run }, outside);
    const promised = await promisesOf('codex');
    expect(Object.keys(reached).sort()).toEqual(Object.keys(promised).sort());
    const broken = Object.entries(reached).filter(([row, what]) => what !== '' && promised[row]);
    expect(broken).toEqual([]);
  });

  test.each(['enclosure', 'launcher'] as const)('ends the whole session when the %s is killed', async (victim) => {
    const others = await processesOf(UID);
    const { sandbox, client } = await boxes.start();
    await client.run('(setsid sleep 3457 &) ; sleep 3457 & true');
    process.kill((await boxes.processesOf(sandbox))[victim], 'SIGKILL');
    expect(await sandbox.died).toEqual({ reason: 'killed', exitCode: null });
    await expect.poll(() => processesOf(UID)).toEqual(others);
  });

  test('removes CODEX_HOME, files and control groups with the session', async () => {
    const { sandbox } = await boxes.start();
    expect((await boxes.filesOf(sandbox)).length).toBeGreaterThanOrEqual(3);
    await sandbox.remove();
    expect(await boxes.filesOf(sandbox)).toEqual([]);
  });
});
