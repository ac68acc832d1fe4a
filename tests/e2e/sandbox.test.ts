import { chmod, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Result, SessionSpec } from '@shellfleet/client';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { reasonToWait } from '../support/reason-to-wait.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

const MIB = 2 ** 20;
let stack: TestFleet;
let shared: string;
beforeAll(async () => {
  shared = await realpath(await mkdtemp(join(tmpdir(), 'sf-shared-')));
  await chmod(shared, 0o777);
  stack = await startFleet({ slots: 40, env: { SHELLFLEET_WORKSPACES: shared } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(shared, { recursive: true, force: true });
});

let sessions = 0;
async function runOnce(script: string, spec: SessionSpec): Promise<Result> {
  const session = await stack.fleet.session(`sandbox-${sessions++}`, spec);
  const result = await session.run(script);
  await session.close();
  return result;
}

/** Expects the Result of a command that never ran, with its error. */
const refused = (result: Result, code: string, expected: string[]) => {
  expect(result).toEqual(
    expectedResult(result.sessionId, {
      outcome: 'error',
      exitCode: null,
      reason: undefined as never,
      shell: expect.any(Object) as never,
      error: expect.objectContaining({ code, message: expect.any(String) }) as never,
    }),
  );
  for (const words of expected) expect(result.error?.message).toContain(words);
};

describe('the image of a session', () => {
  test('ends commands with a Result, not an exception, when it does not exist', async () => {
    refused(await runOnce('echo never', { image: 'localhost:1/no/such-image:v1' }), 'IMAGE_UNAVAILABLE', [
      'localhost:1/no/such-image:v1',
    ]);
  });

  test('is named in the error when it has no shell', async () => {
    refused(await runOnce('echo never', { image: inject('testImages').noShell }), 'SESSION_START_FAILED', [
      'No shell runs in the container',
      inject('testImages').noShell,
    ]);
  });

  test('has its directory and wrapping entry point used by a session that names them', async () => {
    const image = inject('testImages').busybox;
    const spec: SessionSpec = { image, cwd: 'image', shell: ['env', 'ENTERED=yes', 'sh'] };
    const session = await stack.fleet.session('image-own', spec);
    // The image has no WORKDIR.
    const script = 'pwd; echo $ENTERED $HOME';
    const there = '/\nyes /workspace\n';
    expect(await session.run(script)).toMatchObject({ outcome: 'success', stdout: there });
    expect(await session.run('cd /tmp; exit 3')).toMatchObject({ outcome: 'failure', exitCode: 3 });
    expect((await session.run('pwd')).stdout).toBe('/tmp\n');
    await session.restart();
    expect((await session.run(script)).stdout).toBe(there);
    await session.close();
  });

  // S0-56
  test('keeps its variables next to those of the session', async () => {
    const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
    const { Config } = await docker.getImage(inject('sessionImage')).inspect();
    const path = Config.Env.find((pair) => pair.startsWith('PATH='));
    expect((await runOnce('printenv PATH GIVEN', { env: { GIVEN: 'given' } })).stdout).toBe(
      `${path?.slice('PATH='.length)}\ngiven\n`,
    );
  });

  test.each(['busybox', 'dashOnly'] as const)('has all that a session needs: %s', async (name) => {
    const session = await stack.fleet.session(`image-${name}`, {
      image: inject('testImages')[name],
      env: { A: "it's" },
    });
    await session.run('kept=yes; fn() { echo "fn $1"; }; cd /tmp; set -- one two');
    expect(await session.run('echo $kept; fn here; pwd; echo $2; echo "$A"; (exit 4)')).toEqual(
      expectedResult(session.id, { outcome: 'failure', exitCode: 4, stdout: "yes\nfn here\n/tmp\ntwo\nit's\n" }),
    );
    expect(await session.run('read -r line; echo "$line"', { stdin: 'given\n', env: { B: 'b' }, cwd: '/' })).toEqual(
      expectedResult(session.id, { stdout: 'given\n' }),
    );
    const exited = await session.run('exit 3');
    expect({ ...exited, shell: undefined }).toMatchObject({ outcome: 'failure', exitCode: 3 });
    expect((await session.run('echo $kept; pwd')).stdout).toBe('yes\n/tmp\n');
    const endless = await session.run('while :; do :; done', { timeoutMs: 300 });
    expect(endless.outcome).toBe('timeout');
    expect((await session.run('echo on')).stdout).toBe('on\n');
    await session.files.write('/workspace/f', 'bytes');
    expect(await session.files.readText('/workspace/f')).toBe('bytes');
    await session.close();
  });
});

describe('the isolation of a sandbox', () => {
  // S0-50
  test('gives user 1000:1000 its own /workspace, and no privileges or network', async () => {
    const script = `id -u; id -g; pwd; touch f && stat -c %u f; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t';
      cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '; mkdir /root/x 2>/dev/null || echo denied; echo $HOME`;
    expect((await runOnce(script, {})).stdout.split('\n')).toEqual([
      '1000',
      '1000',
      '/workspace',
      '1000',
      'CapEff:0000000000000000',
      'NoNewPrivs:1',
      'Seccomp:2',
      'lo',
      'denied',
      '/workspace',
      '',
    ]);
  });

  // S1-36
  test('hides the worker’s secrets and the keeper’s token from variables, files and processes', async () => {
    const script = `env; cat /proc/1/environ /proc/$$/environ /proc/1/cmdline 2>/dev/null | tr '\\0' '\\n'; ls -la /.shellfleet /run/shellfleet`;
    const { output } = await runOnce(script, {});
    expect(output).not.toMatch(/SF_TOKEN|SF_SYNC|SHELLFLEET_SEAL|redis:\/\//i);
  });

  // S0-43
  test('leaves /workspace and /tmp writable with a read-only root', async () => {
    // The user may not write to /usr of a writable root either.
    const script =
      "grep -c ' / [^ ]* ro,' /proc/mounts; echo a > /workspace/a && echo b > /tmp/b && cat /workspace/a /tmp/b";
    expect(await runOnce(script, { policy: { type: 'docker', readOnlyRootfs: true } })).toMatchObject({
      outcome: 'success',
      stdout: '1\na\nb\n',
    });
  });

  // S0-41, S0-46
  test('mounts a host directory only where the operator allows', async () => {
    await writeFile(join(shared, 'from-host'), 'hello');
    const script = 'cat from-host; echo back > from-sandbox; pwd';
    expect(await runOnce(script, { workspace: shared })).toMatchObject({
      outcome: 'success',
      stdout: 'hello/workspace\n',
    });
    expect(await readFile(join(shared, 'from-sandbox'), 'utf8')).toBe('back\n');
    // A path with a colon, which separates the parts of a mount on Docker's command line.
    const colon = join(shared, 'a:b');
    await mkdir(colon);
    await writeFile(join(colon, 'from-host'), 'colon');
    expect((await runOnce('cat from-host', { workspace: colon })).stdout).toBe('colon');
    for (const workspace of ['/etc', `${shared}/../..`, '/'])
      expect(await reasonToWait(stack.fleet, `sandbox-${sessions++}`, { workspace })).toContain(
        'SHELLFLEET_WORKSPACES',
      );
  });

  // Another host may allow these specs, so their sessions wait.
  test.each([
    [{ user: 'root' }, 'user'],
    [{ user: '0:0' }, 'user'],
    [{ user: '1000:0' }, 'user'],
    [{ user: 'daemon' }, 'user'],
    [{ limits: { memoryBytes: 2 ** 49 } }, 'limits.memoryBytes'],
    [{ limits: { cpus: 1_000 } }, 'limits.cpus'],
    [{ limits: { diskBytes: 2 ** 30 } }, 'limits.diskBytes'],
    [{ redactFormats: false }, 'redactFormats'],
  ] satisfies [SessionSpec, string][])(
    'makes a session wait, never weakened, when no host enforces or allows: %o',
    async (spec, field) => {
      expect(await reasonToWait(stack.fleet, `sandbox-${sessions++}`, spec)).toContain(`${field}: `);
    },
  );

  test.each([
    [{ limits: { cpuTimeSeconds: 10 } }, 'limits.cpuTimeSeconds'],
    [{ cwd: '/proc/self/fd/7' }, 'cwd'],
  ] satisfies [SessionSpec, string][])('refuses at once what no host can ever run: %o', async (spec, field) => {
    refused(await runOnce('echo never', spec), 'SANDBOX_UNAVAILABLE', [field]);
  });
});

describe('the limits of a sandbox', () => {
  test('end a command over the memory limit with the reason oom; the session goes on', async () => {
    const session = await stack.fleet.session('memory', { limits: { memoryBytes: 64 * MIB } });
    await session.run('kept=yes');
    const tooMuch = `python3 -c 'x = bytearray(200 * 2**20)'`;
    expect(await session.run(`echo before; ${tooMuch}`)).toMatchObject({
      outcome: 'failure',
      exitCode: 137,
      reason: 'oom',
      stdout: 'before\n',
      shell: { state: 'kept', epoch: 1 },
    });
    expect(await session.run('echo $kept')).toMatchObject({ outcome: 'success', stdout: 'yes\n' });
    expect(await session.run(`exec ${tooMuch}`)).toMatchObject({
      outcome: 'failure',
      reason: 'oom',
      shell: { state: 'lost', epoch: 2 },
    });
    expect(await session.run('echo on')).toMatchObject({ outcome: 'success', stdout: 'on\n' });
    await session.close();
  });

  test('fail a command at the process limit, and the session goes on', async () => {
    const session = await stack.fleet.session('pids', { limits: { pids: 32 } });
    const result = await session.run('for i in $(seq 1 64); do sleep 4321 & done; echo done', { timeoutMs: 5_000 });
    expect(result.outcome).not.toBe('success');
    expect(
      await session.run('pgrep -r D,R,S,T -x sleep | wc -l | tr -d "\\n"; echo " on"', { timeoutMs: 5_000 }),
    ).toMatchObject({
      outcome: 'success',
      stdout: expect.stringContaining(' on\n'),
    });
    await session.close();
  });

  test('keep a fork bomb in its session, which goes on afterwards', async () => {
    const session = await stack.fleet.session('bomb', { limits: { pids: 64 } });
    const beside = await stack.fleet.session('beside-the-bomb');
    const [, other] = await Promise.all([
      session.run(':(){ :|:& };:', { timeoutMs: 5_000 }),
      beside.run('for i in $(seq 1 50); do sh -c true || exit 1; done; echo fine'),
    ]);
    // The bomb runs in the background: its command may end before the limit is reached.
    const refused = () => session.run('cat /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events 2>/dev/null');
    await until(refused, ({ stdout }) => /^max [1-9]/m.test(stdout));
    expect(other).toMatchObject({ outcome: 'success', stdout: 'fine\n' });
    const after = await until(
      () => session.run('sh -c "echo on"', { timeoutMs: 5_000 }),
      ({ outcome }) => outcome === 'success',
    );
    expect(after.stdout).toBe('on\n');
    await Promise.all([session.close(), beside.close()]);
  });

  test('bound the processor time of a session by cpus', async () => {
    const script =
      'cat /sys/fs/cgroup/cpu.max 2>/dev/null || cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us';
    const { stdout } = await runOnce(script, { limits: { cpus: 0.5 } });
    expect(stdout.trim().split(/\s+/)).toEqual(['50000', '100000']);
  });
});
