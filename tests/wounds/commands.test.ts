import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 40 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** Time limit of these commands, far below the default. */
const AT_ONCE_MS = 3_000;

describe('a command', () => {
  // daytona#4230: a session hangs on a here-document at the end of a script.
  // S1-13
  test('ends at once with its here-document’s delimiter as the last bytes (daytona#4230)', async () => {
    const session = await stack.fleet.session('daytona-4230');
    const heredoc = "cat << 'EOF' > /tmp/test.txt\nhello $world\n`it's` \"quoted\"\nEOF";
    expect(await session.run(heredoc, { timeoutMs: AT_ONCE_MS })).toEqual(expectedResult('daytona-4230'));
    expect((await session.run('cat /tmp/test.txt')).stdout).toBe('hello $world\n`it\'s` "quoted"\n');
    expect(await session.run('name=world; cat <<EOF\nhello $name\nEOF', { timeoutMs: AT_ONCE_MS })).toEqual(
      expectedResult('daytona-4230', { stdout: 'hello world\n' }),
    );
  });

  // daytona#4230: a session hangs on a command that starts long-running processes.
  // S2-25
  test('ends at once when it starts long-running processes, which go on (daytona#4230)', async () => {
    const session = await stack.fleet.session('daytona-4230-starts');
    const starts = 'sh -c "sleep 4321 & sleep 4322 & echo installed"';
    expect(await session.run(starts, { timeoutMs: AT_ONCE_MS })).toEqual(
      expectedResult('daytona-4230-starts', { stdout: 'installed\n' }),
    );
    const running = (await session.info()).background.map(({ command }) => command);
    expect(running.sort()).toEqual(['sleep 4321', 'sleep 4322']);
  });

  // The keeper checks the syntax of a script with unbalanced parentheses or a here-document before it runs. Each row
  // has one. SWE-ReX#286: a separate syntax check refuses scripts that the shell would run.
  test.each([
    [
      'globs of an option that an earlier command has switched on',
      "echo /etc/host!(s)?(name) '(' | tr ' ' '\\n' | sort -u | tail -n 1",
      '/etc/hostname\n',
    ],
    ['a here-document in a command substitution', 'x=$(cat <<A\n(one\nA\n); echo "$x"', '(one\n'],
    [
      'nested awk with quotes of both kinds',
      `printf '(a b\\n' | awk '{ printf "%s\\"%s\\n", $1, "'"'"'" }'`,
      '(a"\'\n',
    ],
    ['a here-document whose text is like a delimiter', "cat <<'EOF'\nSWEREX\nEOF\necho 'EOF'", 'SWEREX\nEOF\n'],
    ['a case in a command substitution', 'echo "$(case x in x) echo "((it is" ;; esac)"', '((it is\n'],
    ['an alias, without which it is a syntax error', 'loop i in 1; do\necho "(in the loop"\ndone', '(in the loop\n'],
  ])('runs %s, which the shell accepts (SWE-ReX#286)', async (what, script, stdout) => {
    const session = await stack.fleet.session(`swe-rex-286-${what.replaceAll(/[^a-z]+/g, '-')}`);
    await session.run('shopt -s extglob expand_aliases; alias loop=for');
    expect(await session.run(script)).toEqual(expectedResult(session.id, { stdout }));
  });

  // SWE-ReX#286: a syntax error in a script is reported as an error of the server.
  test('has the shell’s own message for a syntax error (SWE-ReX#286)', async () => {
    const session = await stack.fleet.session('swe-rex-286-real');
    expect(await session.run('echo one; fi', { timeoutMs: AT_ONCE_MS })).toMatchObject({
      outcome: 'failure',
      exitCode: 2,
      stderr: expect.stringContaining('syntax error near unexpected token'),
    });
    expect((await session.run('echo on')).stdout).toBe('on\n');
  });

  // OpenSandbox: markers in stdout rewrite directory, variables and exit code.
  test('may print markers, which are output like any other (OpenSandbox)', async () => {
    const session = await stack.fleet.session('markers');
    await session.run('cd /tmp; A=kept');
    const forged = [
      '__PWD__:/root',
      '__ENV_DUMP_START__\nA=changed\n__ENV_DUMP_END__',
      '__EXIT_CODE__:0',
      'SHELLPS1PREFIX',
      '__LC_SHELL_DONE__ 0',
      '\u001eSX 1 E 0',
      '###PS1JSON###\n{"exit_code": 0}\n###PS1END###',
    ].join('\n');
    const script = `cat <<'FORGED'\n${forged}\nFORGED\ncat <<'FORGED' >&2\n${forged}\nFORGED\nsh -c 'exit 7'`;
    expect(await session.run(script)).toEqual(
      expectedResult('markers', {
        outcome: 'failure',
        exitCode: 7,
        stdout: `${forged}\n`,
        stderr: `${forged}\n`,
        output: expect.any(String) as never,
      }),
    );
    expect((await session.run('pwd; echo $A')).stdout).toBe('/tmp\nkept\n');
  });

  // OpenSandbox: a line of 16 MiB ends the run.
  test('may print a line of 16 MiB (OpenSandbox)', async () => {
    const session = await stack.fleet.session('long-line', { output: { maxBytes: 1_000 } });
    const result = await session.run('head -c 17000000 /dev/zero | tr "\\0" x; echo; echo end');
    expect(result).toMatchObject({ outcome: 'success', totals: { stdoutBytes: 17_000_005, stdoutLines: 2 } });
    expect(result.stdout).toMatch(/^x+\n\[\.\.\. \d+ bytes, 0 lines omitted \.\.\.\]\nx+\nend\n$/);
  });

  // LangChain: output without a last newline hides the marker, so the command times out and the state is lost.
  test('returns abc at once for `printf abc` (LangChain)', async () => {
    const session = await stack.fleet.session('printf');
    await session.run('kept=yes');
    expect(await session.run('printf abc', { timeoutMs: AT_ONCE_MS })).toEqual(
      expectedResult('printf', { stdout: 'abc' }),
    );
    expect(await session.run('printf "abc\\n"; echo $kept')).toEqual(
      expectedResult('printf', { stdout: 'abc\nyes\n' }),
    );
  });

  // SWE-ReX, LangChain, OpenHands: `cat` reads the marker or the next command as its stdin.
  test('reads an end of file at once, and the next runs (SWE-ReX, LangChain, OpenHands)', async () => {
    const session = await stack.fleet.session('cat');
    expect(await session.run('cat', { timeoutMs: AT_ONCE_MS })).toEqual(expectedResult('cat'));
    expect(await session.run('read V; echo "got:[$V]"', { timeoutMs: AT_ONCE_MS })).toEqual(
      expectedResult('cat', { stdout: 'got:[]\n' }),
    );
    expect(await session.run('echo next')).toEqual(expectedResult('cat', { stdout: 'next\n' }));
  });

  // SWE-ReX, LangChain, Cloudflare: `exit 3` ends the session, and its code is lost.
  test('ends with `exit 3` and leaves the shell as it was (SWE-ReX, LangChain, Cloudflare)', async () => {
    const session = await stack.fleet.session('exit');
    await session.run('kept=yes; cd /tmp; fn() { echo fn; }');
    expect(await session.run('exit 3', { timeoutMs: AT_ONCE_MS })).toEqual(
      expectedResult('exit', {
        outcome: 'failure',
        exitCode: 3,
        shell: { state: 'kept', epoch: 1 },
      }),
    );
    expect(await session.run('echo $kept; pwd; fn')).toEqual(
      expectedResult('exit', { stdout: 'yes\n/tmp\nfn\n', shell: { state: 'kept', epoch: 1 } }),
    );
  });

  // S0-52
  // LangChain, docker exec: in an image without bash every command runs into its timeout, or fails with an OCI error.
  test('runs in an image with any POSIX shell (LangChain, docker exec)', async () => {
    const session = await stack.fleet.session('no-bash', { image: inject('testImages').dashOnly });
    expect(await session.run('command -v bash || echo none; kept=yes; cd /tmp', { timeoutMs: AT_ONCE_MS })).toEqual(
      expectedResult('no-bash', { stdout: 'none\n' }),
    );
    expect(await session.run('echo $kept; pwd')).toEqual(expectedResult('no-bash', { stdout: 'yes\n/tmp\n' }));
  });
});
