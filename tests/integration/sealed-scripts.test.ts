// fault 101. A script reaches its shell in a sealed file without a name, so that other processes of the same user in
// the sandbox cannot change it.
import { describe, expect, test } from 'vitest';
import { host, type ImageName, openBox, skipWithoutRoot, useBox } from '../support/shell-box.ts';

const shells = [
  ['bash', 'session', 'socket'],
  ['bash', 'session', 'attach'],
  ['dash', 'dashOnly', 'socket'],
  ['busybox ash', 'busybox', 'socket'],
  ...host.map((place) => ['bash', 'session', place]),
] as [string, ImageName, 'socket' | 'attach' | 'host'][];

const reason = "a command had replaced the descriptors of its shell's scripts, so the shell was replaced";

describe.each(shells)('the scripts of %s (%s over %s)', (_name, image, transport) => {
  skipWithoutRoot(transport);
  const it = useBox({ image, transport });
  const run: typeof it.client.run = (...args) => it.client.run(...args);

  test("cannot be written, emptied or extended through the shell's descriptors", async () => {
    const { out } = await run(
      `n=0; for file in /proc/$$/fd/23? /proc/$$/fd/24[0-5]; do n=$((n+1)); for how in '>' '>>' '1<>'; do
        (eval "echo 'echo swapped' $how$file") 2>/dev/null && echo "$how $file"; done; done; echo $n`,
    );
    expect(out).toBe('16\n');
  });

  test('run unchanged while a process writes to everything that the shell reads', async () => {
    await run(`shell=$$; { while :; do
        for file in /proc/$shell/fd/23? /proc/$shell/fd/24[0-5]; do echo 'echo swapped' >$file; done
        for name in command before after check early loop; do echo 'echo swapped' >"$__sf_dir/$name"; done
      done; } >/dev/null 2>&1 & writer=$!`);
    const ran: unknown[] = [];
    const expected: unknown[] = [];
    for (let n = 0; n < 60; n++) {
      const options = n % 3 === 0 ? { cwd: '/proc', env: { A: `${n}` } } : {};
      const script = n % 4 === 0 ? `read x <<E\n${n}\nE\necho "$x $A"` : `echo "${n} $A"`;
      ran.push((await run(script, options)).out);
      expected.push(`${n} ${n % 3 === 0 ? n : ''}\n`);
    }
    expect(ran).toEqual(expected);
    await run('kill $writer; wait $writer');
  });

  test.each([1, 40, 63, 64, 65, 255, 256, 1_023, 4_096, 16_383, 70_000, 300_000])(
    'run unchanged after a longer one, with %i characters',
    async (length) => {
      await run(`: ${'y'.repeat(length * 2)}\nv=before`);
      const script = 'v=$?'.padEnd(length, ' ').slice(0, length);
      expect(await run(script)).toMatchObject({ err: length === 1 ? expect.any(String) : '', state: 'kept' });
      if (length > 4) expect((await run('echo $v')).out).toBe('0\n');
    },
  );

  test('are not joined with the next script if they end inside a construct', async () => {
    expect((await run('echo a\\')).out).toBe('a\n');
    expect((await run('echo b #')).out).toBe('b\n');
    expect((await run("echo 'c")).out).toBe('');
    expect(await run('echo d')).toMatchObject({ out: 'd\n', err: '' });
  });
});

describe('a bash whose command has changed the descriptors of its scripts', () => {
  const all = (what: string) => `for n in {230..245}; do eval "exec $n${what}"; done; V=1`;

  test('is kept, and gets closed descriptors again', async () => {
    await using it = await openBox();
    for (let n = 1; n <= 3; n++) {
      expect((await it.client.run(all('>&-'))).code).toBe(0);
      const script = `echo "$V"; ls /proc/$$/fd | grep -c '^2\\(3.\\|4[0-5]\\)$'; for f in /proc/[0-9]*/comm; do read c <$f; [ $c != keeper ] || echo $f; done`;
      expect(await it.client.run(script)).toMatchObject({ out: '1\n16\n/proc/1/comm\n', state: 'kept' });
      expect((await it.client.run('pwd', { cwd: '/proc', env: { A: '1' } })).out).toBe('/proc\n');
    }
  });

  test('is replaced before the next command if the descriptors lead elsewhere', async () => {
    await using it = await openBox();
    expect((await it.client.run(`echo 'echo evil' >/tmp/evil; ${all('</tmp/evil')}`)).code).toBe(0);
    const next = await it.client.run('echo "ok $V"');
    expect(next).toMatchObject({ out: 'ok \n', end: { shell: { state: 'lost', reason, shellNumber: 2 } } });
    expect(await it.client.run('echo again')).toMatchObject({ out: 'again\n', state: 'kept' });
  });

  test('does not run a command for the old shell if the descriptors lead elsewhere', async () => {
    await using it = await openBox();
    await it.client.run('exec 230</dev/null');
    await expect(it.client.run('echo ok', { shellNumber: 1 })).rejects.toThrow('refused: other-shell');
    expect(await it.client.run('echo ok', { shellNumber: 2 })).toMatchObject({ out: 'ok\n' });
  });

  test('accepts no descriptors from another process while it has its own', async () => {
    await using it = await openBox();
    await it.client.run(`{ for n in {230..245}; do eval "exec $n<<<'echo evil'"; done; me=$BASHPID
      while :; do printf -- '- holder=%s from=230 .\n' $me >"$__sf_dir/go"; sleep 0.01; done; } >/dev/null 2>&1 & writer=$!`);
    for (let n = 0; n < 40; n++)
      expect(await it.client.run(`echo ${n}`)).toMatchObject({ out: `${n}\n`, end: { reason: 'exited' } });
    await it.client.run('kill $writer; wait $writer');
  });
});
