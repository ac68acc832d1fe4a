import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ExpectedFields, expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

const failed = (exitCode: number, own: ExpectedFields = {}): ExpectedFields => ({
  outcome: 'failure',
  exitCode,
  ...own,
});

describe.each(['socket', 'attach'] as const)('the end of a command over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport, slots: 40 });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  // S1-20, S2-18: the exit code is that of the shell, and no code is taken for a refusal.
  test.each([
    ['true', {}],
    ['false', failed(1)],
    ['printf abc', { stdout: 'abc' }],
    ['(exit 42)', failed(42)],
    ['no-such-command-here', failed(127, { stderr: expect.stringContaining('not found') as never })],
    ["sh -c 'kill -TERM $$'", failed(143, { stderr: 'Terminated\n' })],
    ['# only a comment', {}],
    ['exec true; echo not reached', { shell: { state: 'lost', epoch: 2, reason: expect.any(String) } }],
  ] as [string, ExpectedFields][])('has the shell’s exit code: %s', async (script, own) => {
    const id = `ends-${Buffer.from(script).toString('hex').slice(0, 40)}`;
    const session = await stack.fleet.session(id);
    const result = await session.run(script);
    const { stderr = '' } = own;
    const asymmetric = typeof stderr !== 'string';
    expect(result).toEqual(
      expectedResult(id, {
        ...own,
        ...(asymmetric ? { stderr: result.stderr, output: result.output, totals: result.totals } : {}),
      }),
    );
    if (asymmetric) expect(result.stderr).toEqual(stderr);
    expect((await session.run('echo on')).stdout).toBe('on\n');
  });

  // S1-19
  test('leaves the shell as it was after exit and set -e', async () => {
    const session = await stack.fleet.session('exits');
    await session.run('kept=yes; cd /tmp; fn() { echo fn; }; sleep 4321 & echo $! > /tmp/pid');
    expect(await session.run('echo before; exit 3; echo after')).toEqual(
      expectedResult('exits', failed(3, { stdout: 'before\n', shell: expect.any(Object) as never })),
    );
    const after = await session.run('echo $kept; pwd; fn; kill -0 $(cat /tmp/pid) && echo alive');
    expect(after).toEqual(
      expectedResult('exits', { stdout: 'yes\n/tmp\nfn\nalive\n', shell: { state: 'kept', epoch: 1 } }),
    );
    expect(await session.run('set -e; false; echo after')).toEqual(
      expectedResult('exits', failed(1, { shell: expect.any(Object) as never })),
    );
    expect((await session.run('echo $kept; set +e; false; echo on')).stdout).toBe('yes\non\n');
  });

  // invariant 5, S2-04
  test('is reported with a lost shell and a higher epoch when the shell is killed', async () => {
    const session = await stack.fleet.session('killed');
    await session.run('kept=yes');
    expect(await session.run('echo before; kill -9 $$')).toEqual(
      expectedResult('killed', {
        outcome: 'failure',
        exitCode: expect.toSatisfy((code) => code === null || code === 137) as never,
        signal: 'SIGKILL',
        reason: 'signalled',
        stdout: 'before\n',
        shell: { state: 'lost', reason: expect.stringContaining('killed') as never, epoch: 2 },
      }),
    );
    expect(await session.run('echo "[$kept]"; pwd')).toEqual(
      expectedResult('killed', { stdout: '[]\n/workspace\n', shell: { state: 'kept', epoch: 2 } }),
    );
    expect((await session.info()).epoch).toBe(2);
  });

  // S1-18
  test.each([
    ['an open quote', `echo "never ends`],
    ['an open parenthesis', '(echo one'],
    ['an if without its fi', 'if true; then echo one'],
    ['an open here-document', 'cat <<END\nno end'],
  ])('follows a syntax error at once, and the shell stays usable: %s', async (_what, script) => {
    const session = await stack.fleet.session('syntax');
    await session.run('kept=yes');
    const result = await session.run(script);
    expect(result).toMatchObject({ outcome: 'failure', exitCode: 2, stdout: '' });
    expect(result.stderr).toMatch(/syntax error|unexpected|unterminated/i);
    expect(result.timings.runMs).toBeLessThan(2_000);
    expect((await session.run('echo $kept')).stdout).toBe('yes\n');
  });

  // S1-18
  test.each([
    ['redirects both streams', 'exec >/dev/null 2>&1'],
    ['closes both streams', 'exec 1>&- 2>&-'],
    ['closes every descriptor', 'i=0; while [ $i -lt 256 ]; do eval "exec $i>&-"; i=$((i + 1)); done 2>/dev/null'],
    ['redefines builtins as functions', 'printf() { :; }; cd() { :; }; exit() { :; }; read() { :; }; trap() { :; }'],
    ['redefines builtins as aliases', 'shopt -s expand_aliases; alias printf=false exec=false read=false trap=false'],
    ['sets traps that run at every step', 'trap "v=1" DEBUG ERR RETURN'],
    ['replaces the builtin that finds builtins', 'command() { :; }'],
    ['makes another value of IFS read-only', 'IFS=0123456789; readonly IFS'],
    ['sets the options for globs, variables and overwriting', 'set -f -u -C; PROMPT_COMMAND="echo prompt"'],
  ])('is detected for a command that %s, and for the next one', async (what, script) => {
    const session = await stack.fleet.session(`hostile-${what.replaceAll(/[^a-z]/g, '-')}`);
    expect(await session.run(script, { timeoutMs: 3_000 })).toMatchObject({ outcome: 'success', stdout: '' });
    const next = await session.run('echo on; sh -c "exit 7"', { timeoutMs: 3_000 });
    expect(next).toMatchObject({ exitCode: 7, stdout: 'on\n', stderr: '', shell: { state: 'kept', epoch: 1 } });
  });
});
