import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Session, SessionSpec } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { filesOf, isRoot, processesOf } from '../support/host-leftovers.ts';
import { installCodex } from '../support/install-codex.ts';
import { SessionTerminal } from '../support/session-terminal.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// A host that offers the policy codex alone, with the real Codex CLI, which is fetched from npm on the first run.
// tests/integration/codex-sandbox.test.ts tests the parts of the policy.

const UID = 4724;
describe.runIf(isRoot)('the policy codex', () => {
  let stack: TestFleet;
  let directory: string;
  let session: Session;
  beforeAll(async () => {
    const program = await installCodex();
    directory = await mkdtemp(join(tmpdir(), 'sf-codex-policy-'));
    const allow = { networks: ['restricted', 'limited', 'full'], hosts: ['example.org'] };
    const escalation = { mode: 'workspace-write', network: 'full' };
    await writeFile(join(directory, 'config.yaml'), JSON.stringify({ allow, escalation }));
    stack = await startFleet({
      env: {
        DOCKER_HOST: 'unix:///nonexistent/docker.sock',
        SHELLFLEET_POLICIES: 'codex',
        SHELLFLEET_CODEX: program,
        SHELLFLEET_HOST_USER: String(UID),
        SHELLFLEET_CONFIG: join(directory, 'config.yaml'),
      },
    });
    session = await open();
  }, 300_000);
  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
    await until(
      () => processesOf(UID),
      (left) => left.length === 0,
    );
  });

  let sessions = 0;
  const open = (spec: SessionSpec = {}) => stack.fleet.session(`codex-${sessions++}`, { policy: 'codex', ...spec });

  // S3-25
  test('lets an approved command write where its session may not, and leaves nothing behind', async () => {
    const asking = await open({ approval: 'on-request', sandbox: { mode: 'read-only' } });
    await asking.run('cd /workspace');
    const before = await filesOf(stack.stateDirectory);
    const left = asking.run('touch here', { escalate: { justification: 'the file is needed' } });
    const [question] = await until(
      () => stack.fleet.approvals.list(),
      ({ length }) => length === 1,
    );
    await stack.fleet.approvals.approve(question?.id ?? '');
    expect(await left).toMatchObject({ outcome: 'success', outside: true, shell: { state: 'kept', epoch: 1 } });
    expect(await filesOf(stack.stateDirectory)).toEqual(before);
    expect(await asking.run('ls')).toMatchObject({ stdout: 'here\n' });
    await asking.close();
  });

  test('keeps a shell’s state, input and exact output, as the user that the operator names', async () => {
    await session.run('kept=yes; fn() { echo "fn $1"; }; cd /tmp; echo text > /workspace/file', { env: { A: 'x' } });
    expect(
      await session.run('id -u; echo $kept$A; fn here; pwd; cat /workspace/file -; echo oops >&2; (exit 4)', {
        stdin: 'given\n',
      }),
    ).toEqual(
      expectedResult(session.id, {
        outcome: 'failure',
        exitCode: 4,
        stdout: `${UID}\nyes\nfn here\n/tmp\ntext\ngiven\n`,
        stderr: 'oops\n',
        imageDigest: undefined,
        output: expect.any(String) as never,
      }),
    );
    const large = await session.run('head -c 300000 /dev/zero | tr "\\0" x | md5sum; exit 3');
    expect(large).toMatchObject({
      outcome: 'failure',
      exitCode: 3,
      stdout: expect.stringMatching(/^[0-9a-f]{32} {2}-\n$/),
    });
  });

  test('keeps output and shell at a timeout, and ends the whole process tree', async () => {
    const script = `echo before; trap '' TERM; (setsid sleep 8766 &); sleep 8766`;
    expect(await session.run(script, { timeoutMs: 300 })).toMatchObject({
      outcome: 'timeout',
      stdout: 'before\n',
      shell: { state: 'kept' },
    });
    expect(await session.run('pgrep -r D,R,S,T -x sleep; echo $kept')).toMatchObject({
      outcome: 'success',
      stdout: 'yes\n',
    });
  });

  test('denies with the kernel’s message, and the session goes on', async () => {
    const denied = await session.run(
      `touch /usr/f; python3 -c 'import socket; socket.socket()' 2>&1 | tail -1 >&2; (echo x > /etc/passwd) 2>&1; false`,
    );
    expect(denied).toMatchObject({
      outcome: 'failure',
      exitCode: 1,
      stdout: expect.stringMatching(/\/etc\/passwd: Read-only file system\n$/),
      stderr: expect.stringMatching(
        /^touch: cannot touch '\/usr\/f': Read-only file system\nPermissionError: \[Errno 1\] Operation not permitted\n$/,
      ),
    });
    const reads = await open({ sandbox: { mode: 'read-only' } });
    expect(await reads.run('head -c 4 /etc/passwd; touch /workspace/f')).toMatchObject({
      outcome: 'failure',
      stdout: 'root',
      stderr: "touch: cannot touch '/workspace/f': Read-only file system\n",
    });
    expect((await session.run('echo $kept')).stdout).toBe('yes\n');
    await reads.close();
  });

  test('gives sessions with `network: full` the host’s network, and refuses `network: limited`', async () => {
    const server = createServer((socket) => socket.end('of the host\n')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const read = `cat < /dev/tcp/127.0.0.1/${(server.address() as AddressInfo).port}`;
    const full = await open({ sandbox: { network: 'full' } });
    expect((await full.run(read)).stdout).toBe('of the host\n');
    expect(await session.run(read)).toMatchObject({ outcome: 'failure', stdout: '' });
    await full.close();
    server.close();
    await expect(open({ sandbox: { network: 'limited', allowedHosts: ['example.org'] } })).rejects.toMatchObject({
      code: 'SESSION_SPEC_INVALID',
      message: expect.stringContaining("nothing in Codex's sandbox can open a socket, so it cannot reach the proxy"),
    });
  });

  test('gives each session its own read-only Codex directory, outside of /tmp', async () => {
    const other = await open();
    const script = `echo $CODEX_HOME; stat -c '%u %a %F' $CODEX_HOME; (echo > $CODEX_HOME/f) 2>/dev/null || echo refused; stat -c %d $CODEX_HOME`;
    const [one, two] = await Promise.all(
      [session, other].map(async (each) => (await each.run(script)).stdout.split('\n')),
    );
    expect(one?.slice(0, 3)).toEqual(['/.shellfleet-run/codex', `${UID} 700 directory`, 'refused']);
    expect(one?.[3]).not.toBe(two?.[3]);
    await other.close();
  });

  test('can open a terminal', async () => {
    await using terminal = await session.attach({ rows: 31, cols: 97 });
    const person = new SessionTerminal(terminal);
    await person.type('echo "$(id -u) $(stty size)"\n');
    await person.sees(`${UID} 31 97`);
  });

  test('keeps commands and state when its worker is killed, returns and adopts the session', async () => {
    const running = await session.submit(
      'echo begun; touch /tmp/runs; until [ -e /tmp/go ]; do sleep 0.05; done; echo "ended $kept"',
    );
    await expect.poll(() => session.files.stat('/tmp/runs').then(Boolean, () => false)).toBe(true);
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    await session.files.write('/tmp/go', '');
    expect(await running.result()).toMatchObject({ outcome: 'success', stdout: 'begun\nended yes\n' });
    expect(await session.run('fn again')).toMatchObject({ stdout: 'fn again\n', shell: { state: 'kept', epoch: 1 } });
  });

  test('leaves nothing of a session behind', async () => {
    await session.run('(setsid sleep 6544 &) ; mkdir -p a/b; chmod 000 a');
    expect((await filesOf(stack.stateDirectory)).length).toBeGreaterThan(2);
    await session.close();
    await expect.poll(() => filesOf(stack.stateDirectory)).toEqual([]);
    await expect.poll(() => processesOf(UID)).toEqual([]);
  });
});
