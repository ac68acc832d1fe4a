import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// State of the shell from command to command, over both transports.
describe.each(['socket', 'attach'] as const)('a session over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  // S1-02
  test('keeps directory, variables, functions, options and positional parameters from command to command', async () => {
    const session = await stack.fleet.session('keeps-state');
    await session.run('mkdir -p deep/er && cd deep/er');
    await session.run('plain=one; export exported=two; declare -A map=([key]=three)');
    await session.run('greet() { echo "hello $1"; }; alias hi="greet alias"; shopt -s expand_aliases');
    await session.run('set -- first "second one"; set -o pipefail; umask 027');
    const script = `pwd; echo $plain; sh -c 'echo $exported'; echo "\${map[key]}"; greet you; echo "$# $2"; false | true; echo $?; umask`;
    expect(await session.run(script)).toEqual(
      expectedResult('keeps-state', {
        stdout: '/workspace/deep/er\none\ntwo\nthree\nhello you\n2 second one\n1\n0027\n',
      }),
    );
    expect(await session.run('hi')).toEqual(expectedResult('keeps-state', { stdout: 'hello alias\n' }));
  });

  test('keeps its background processes, without their output in the next command', async () => {
    const session = await stack.fleet.session('background');
    await session.run('(while :; do echo tick >> ticks; echo tock; sleep 0.02; done) & echo $! > pid');
    const script =
      'until [ -s ticks ]; do sleep 0.02; done; from=$(wc -l < ticks); until [ $(wc -l < ticks) -gt $((from + 2)) ]; do sleep 0.02; done; kill -0 $(cat pid) && echo alive';
    expect(await session.run(script)).toEqual(expectedResult('background', { stdout: 'alive\n' }));
    const ended = 'kill $(cat pid); wait $(cat pid) 2>/dev/null; kill -0 $(cat pid) 2>/dev/null || echo gone';
    expect(await session.run(ended)).toEqual(expectedResult('background', { stdout: 'gone\n' }));
  });

  test('shares nothing with another session', async () => {
    const [one, other] = await Promise.all([stack.fleet.session('alone-1'), stack.fleet.session('alone-2')]);
    await one.run('cd /tmp; mine=yes; export also=yes; fn() { :; }; echo data > /workspace/file; sleep 100 &');
    const script =
      'pwd; echo "[$mine][$also]"; type fn 2>/dev/null; ls -A /workspace; pgrep -x sleep; hostname | wc -l';
    expect(await other.run(script)).toEqual(expectedResult('alone-2', { stdout: '/workspace\n[][]\n1\n' }));
  });

  // S2-05
  test('gives one command its own variables and directory, and the next none of them', async () => {
    const session = await stack.fleet.session('per-command');
    await session.run('export outer=kept; cd /tmp');
    const env = { inner: 'it\'s $(not) `run`\n"twice" \\ é', outer: 'changed' };
    expect(await session.run('pwd; printf "%s|%s" "$inner" "$outer"', { env, cwd: '/usr' })).toEqual(
      expectedResult('per-command', { stdout: `/usr\n${env.inner}|changed` }),
    );
    expect(await session.run('pwd; printf "%s|%s" "${inner-unset}" "$outer"')).toEqual(
      expectedResult('per-command', { stdout: '/tmp\nunset|kept' }),
    );
  });

  // S1-17, S2-21
  test('gives a command its stdin byte for byte, and nothing when it has none', async () => {
    const session = await stack.fleet.session('stdin');
    expect(await session.run('cat', { timeoutMs: 10_000 })).toEqual(expectedResult('stdin'));
    expect(await session.run('read -r line; echo "$? [$line]"')).toEqual(expectedResult('stdin', { stdout: '1 []\n' }));
    const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => (index * 7) % 256);
    const echoed = await session.run('cat', { stdin: bytes, encoding: 'base64' });
    expect(Buffer.from(echoed.stdout, 'base64').equals(Buffer.from(bytes))).toBe(true);
    expect(await session.run('cat; echo; cat', { stdin: 'no end of line' })).toEqual(
      expectedResult('stdin', { stdout: 'no end of line\n' }),
    );
  });
});
