import { isShellfleetError, type Result, type Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { type FleetInspector, inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
let inspect: FleetInspector;
beforeAll(async () => {
  stack = await startFleet({ slots: 40 });
  inspect = inspectFleet(stack);
});
afterAll(async () => {
  await inspect?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
});

const codeOf = (error: unknown) => (isShellfleetError(error) ? error.code : String(error));
const goesOn = async (session: Session, own = {}) =>
  expect(await session.run('echo on')).toMatchObject({ outcome: 'success', stdout: 'on\n', ...own });

describe('variables of a session', () => {
  const env = {
    QUOTES: `it's "twice" \`run\` $(no) \${no} \\ \\\\ ''`,
    NEWLINES: '\n first\n\nlast \n\n',
    UNICODE: 'žluťoučký 漢字 🐚 \u0001\u001b[31m \u00ad\u202e',
    EMPTY: '',
    SPACES: '  a  b\t',
    DASHES: '-n --',
    HUGE: 'x'.repeat(120_000),
    LANG: 'C.UTF-8',
    _under: '1',
  };

  test('reach the shell and its children byte for byte, also in a new shell', async () => {
    const session = await stack.fleet.session('env', { env });
    const print = `python3 -c 'import os, json; print(json.dumps({k: os.environb[k.encode()].decode() for k in ${JSON.stringify(Object.keys(env))}}))'`;
    const given = async () => JSON.parse((await session.run(print)).stdout);
    expect(await given()).toEqual(env);
    expect((await session.run('printf %s "$NEWLINES|$QUOTES"')).stdout).toBe(`${env.NEWLINES}|${env.QUOTES}`);
    await session.run('unset NEWLINES; QUOTES=; kill -9 $$');
    expect(await given()).toEqual(env);
  });

  test('may be thousands', async () => {
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`MANY_${index}`, `value ${index}`]));
    const session = await stack.fleet.session('many-variables', { env: many });
    expect((await session.run('env | grep -c ^MANY_; echo $MANY_1999')).stdout).toBe('2000\nvalue 1999\n');
  });

  test('are an error when the shell refuses them', async () => {
    const session = await stack.fleet.session('readonly-variable', { env: { FIRST: '1', UID: '5' } });
    expect((await session.run('echo never')).error).toMatchObject({
      code: 'SESSION_START_FAILED',
      message: expect.stringMatching(/UID: readonly variable/),
    });
  });
});

describe('the directory of a session', () => {
  test('fails the start of the session when it is no directory', async () => {
    const session = await stack.fleet.session('no-cwd', { cwd: '/etc/passwd' });
    expect(await session.run('echo never')).toMatchObject({
      outcome: 'error',
      error: { code: 'SESSION_START_FAILED', message: expect.stringContaining('/etc/passwd') },
    });
  });

  test('may be removed while the shell is in it', async () => {
    const session = await stack.fleet.session('cwd-removed');
    await session.run('mkdir -p /tmp/gone/deep; cd /tmp/gone/deep; rm -r /tmp/gone');
    await goesOn(session);
    expect(await session.run('exit 4')).toMatchObject({ outcome: 'failure', exitCode: 4 });
    expect(await session.run('pwd', { cwd: '/usr' })).toMatchObject({ stdout: '/usr\n' });
    await goesOn(session);
    expect((await session.run('cd /workspace && pwd')).stdout).toBe('/workspace\n');
  });
});

describe('a hostile session', () => {
  test.each([
    ['its workspace', '/workspace'],
    ['/tmp', '/tmp'],
  ])('goes on after it writes 200 MB to %s, and can remove them', async (_what, directory) => {
    const id = `writes-${directory.replaceAll('/', '-')}`;
    const session = await stack.fleet.session(id, { limits: { memoryBytes: 256 << 20 } });
    const write = await session.run(`head -c 200M /dev/zero > ${directory}/filler`, { timeoutMs: 20_000 });
    expect(write).toEqual(expectedResult(id));
    const remove = `echo on; echo error >&2; wc -c < ${directory}/filler; rm ${directory}/filler`;
    expect(await session.run(remove)).toEqual(
      expectedResult(id, { stdout: 'on\n209715200\n', stderr: 'error\n', output: expect.any(String) as never }),
    );
  });

  test('loses its files in the full directory of its keeper, which the Result reports', async () => {
    const session = await stack.fleet.session('fills-keeper');
    await session.run('kept=yes');
    expect(await session.run('head -c 200M /dev/zero > /run/shellfleet/filler', { timeoutMs: 20_000 })).toMatchObject({
      outcome: 'failure',
      stderr: expect.stringContaining('No space left on device'),
      shell: { state: 'kept' },
    });
    expect(await session.run('echo $kept; echo error >&2')).toMatchObject({
      outcome: 'success',
      stdout: 'yes\n',
      stderr: 'error\n',
      shell: {
        state: 'partial',
        reason: "the session's own directory was full: files that are not the keeper's were removed from it",
      },
    });
    expect((await session.run('ls /run/shellfleet/filler')).outcome).toBe('failure');
    await goesOn(session, { shell: { state: 'kept', epoch: 1 } });
  });

  test('gets fifty fresh shells in one sandbox by fifty restarts', async () => {
    const session = await stack.fleet.session('restarts', { startupCommands: ['echo up >> /tmp/ups'] });
    await session.run('sleep 4321 &');
    for (let index = 0; index < 50; index += 1) await session.restart();
    const result = await session.run('wc -l < /tmp/ups; pgrep -r D,R,S,T -x sleep | wc -l');
    expect(result).toMatchObject({ outcome: 'success', stdout: '51\n0\n', shell: { state: 'kept', epoch: 51 } });
    expect(await inspect.containers('restarts')).toHaveLength(1);
  });
});

describe('close', () => {
  test('ends queued commands at once while the session starts, and leaves nothing', async () => {
    const session = await stack.fleet.session('closed-starting', {
      startupCommands: ['sleep 4321'],
      startupTimeoutMs: 60_000,
    });
    const command = await session.submit('echo never');
    await until(
      () => session.info(),
      ({ state }) => state === 'starting',
    );
    await until(
      () => inspect.containers('closed-starting'),
      (all) => all.length === 1,
    );
    const from = performance.now();
    await session.close();
    expect(performance.now() - from).toBeLessThan(5_000);
    expect(await command.result()).toMatchObject({ outcome: 'cancellation', stdout: '' });
    expect(await inspect.containers('closed-starting')).toEqual([]);
  });

  test('races with two hundred submits: each is refused, or ends once', async () => {
    const session = await stack.fleet.session('submits-while-closing');
    await session.run('true');
    const submits = Array.from({ length: 100 }, (_, index) => session.submit(`echo ${index}`));
    const closing = session.close();
    const more = Array.from({ length: 100 }, (_, index) => session.submit(`echo more ${index}`));
    const settled = await Promise.allSettled([...submits, ...more]);
    await closing;
    const accepted = settled.filter((one) => one.status === 'fulfilled').map(({ value }) => value);
    const refused = settled.filter((one) => one.status === 'rejected').map(({ reason }) => codeOf(reason));
    expect(refused.filter((code) => code !== 'SESSION_CLOSED')).toEqual([]);
    await expect(session.submit('echo later')).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
    const outcomes = await Promise.all(accepted.map(async (command) => (await command.result()).outcome));
    expect(outcomes.every((outcome) => ['success', 'cancellation'].includes(outcome))).toBe(true);
    expect(accepted.length + refused.length).toBe(200);
    expect(
      await inspect.broken(
        'submits-while-closing',
        accepted.map(({ id }) => id),
      ),
    ).toEqual([]);
  });
});

describe('a one-shot command', () => {
  const oneShots = async () =>
    (await Array.fromAsync(stack.fleet.sessions())).filter(
      ({ id, state }) => id.startsWith('run-') && state !== 'closed',
    );
  const leavesNothing = async () => {
    await until(oneShots, (left) => left.length === 0);
    await until(
      async () => (await inspect.containers()).filter(({ session }) => session.startsWith('run-')),
      (left) => left.length === 0,
    );
  };

  test('runs in a fresh shell, whatever others left', async () => {
    await stack.fleet.run('kept=yes; touch /tmp/kept');
    expect(await stack.fleet.run('echo "[$kept]"; ls /tmp')).toMatchObject({ outcome: 'success', stdout: '[]\n' });
    await leavesNothing();
  });

  test.each([
    ['fails', 'exit 3', {}, 'failure'],
    ['times out', 'sleep 4321', { timeoutMs: 300 }, 'timeout'],
    ['cannot start', 'true', { spec: { startupCommands: ['false' as string] } }, 'error'],
    ['leaves a server behind', 'sleep 4321 &', {}, 'success'],
  ])('leaves no session and no container when it %s', async (_what, script, options, outcome) => {
    expect((await stack.fleet.run(script, options)).outcome).toBe(outcome);
    await leavesNothing();
  });

  test('leaves no session and no container when its caller aborts', async () => {
    const abort = new AbortController();
    const running = stack.fleet.run('echo begun; sleep 4321', {
      signal: abort.signal,
      onOutput: () => abort.abort(new Error('enough')),
    });
    await expect(running).rejects.toThrow('enough');
    await leavesNothing();
  });
});

describe('a shell', () => {
  test('is kept when a command runs out of memory, and the Result has that reason', async () => {
    const session = await stack.fleet.session('out-of-memory', { limits: { memoryBytes: 64 << 20 } });
    await session.run('kept=yes');
    const eats = await session.run('python3 -c "b = bytearray(1 << 30)"', { timeoutMs: 20_000 });
    expect(eats).toMatchObject({
      outcome: 'failure',
      exitCode: 137,
      reason: 'oom',
      shell: { state: 'kept', epoch: 1 },
    });
    expect(await session.run('echo $kept')).toEqual(expectedResult('out-of-memory', { stdout: 'yes\n' }));
  });

  describe('runs the next command after one that', () => {
    const keeps = async (id: string, script: string, own: Partial<Result>) => {
      const session = await stack.fleet.session(id);
      await session.run('kept=yes');
      const result = await session.run(script, { timeoutMs: 3_000, killGraceMs: 500 });
      expect(result).toEqual(expectedResult(id, own));
      const next = await session.run('echo $kept; seq 3 | tail -n 1', { timeoutMs: 5_000, killGraceMs: 500 });
      expect(next).toEqual(expectedResult(id, { stdout: 'yes\n3\n' }));
    };

    test.each([
      ['tries to set the clock', 'date -s "2000-01-01" >/dev/null 2>&1; TZ=Mars/Olympus date >/dev/null'],
      ['sets narrow limits', 'ulimit -t 1 -n 16 -f 0'],
      ['ignores all signals that can be ignored', "trap '' TERM INT HUP CHLD PWR USR1 USR2 PIPE"],
      ['changes settings of terminal and jobs', 'stty -echo 2>/dev/null; set +m; disown -a'],
      ['closes descriptors that shells use for themselves', 'exec 3>&- 4>&- 5>&- 9>&- 10>&- 255>&-'],
    ])('%s', (what, script) => keeps(what.replaceAll(' ', '-'), script, {}));

    test('stops the shell itself, and ends as a timeout', () =>
      keeps('stops-itself', 'kill -STOP $$; echo never', { outcome: 'timeout', exitCode: null, reason: 'wall' }));
  });

  test('does not apply variables and directory of a command to the next, however it ends', async () => {
    const session = await stack.fleet.session('does-not-stick', { env: { A: 'session' } });
    const options = { env: { A: 'command', B: 'command' }, cwd: '/usr' };
    for (const [script, more] of [
      ['true', {}],
      ['exit 3', {}],
      ['set -e; false', {}],
      ['sleep 4321', { timeoutMs: 200 }],
    ] as const) {
      await session.run(`set +e; ${script}`, { ...options, ...more });
      expect(await session.run('set +e; echo "$A|${B-unset}"; pwd'), script).toEqual(
        expectedResult('does-not-stick', { stdout: 'session|unset\n/workspace\n' }),
      );
    }
  });
});
