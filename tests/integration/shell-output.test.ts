// Output arrives byte for byte, for each stream, with its end, and never in the output of another command.
import { describe, expect, test } from 'vitest';
import { md5 } from '../support/md5.ts';
import { host, useBox } from '../support/shell-box.ts';

describe.each(['socket', 'attach', ...host] as const)('output over %s', (transport) => {
  const it = useBox({ transport });
  const run: typeof it.client.run = (...args) => it.client.run(...args);

  // S1-25
  test('is separate for stdout and stderr', async () => {
    expect(await run('echo hi; echo e >&2')).toMatchObject({ out: 'hi\n', err: 'e\n', code: 0, state: 'kept' });
  });

  // S1-16
  test('ends without a final newline', async () => {
    const ended = await run('printf abc; printf def >&2');
    expect(ended).toMatchObject({ out: 'abc', err: 'def' });
    expect(ended.ms).toBeLessThan(1_500);
  });

  test('keeps every byte value', async () => {
    const { stdout } = await run('i=0; while [ $i -lt 256 ]; do printf "\\\\$(printf %o $i)"; i=$((i+1)); done');
    expect(stdout).toEqual(Buffer.from([...Array(256).keys()]));
  });

  test('keeps invalid UTF-8 and text together', async () => {
    const { stdout } = await run('printf "é漢😀"; printf "\\377\\376"');
    expect(stdout).toEqual(Buffer.concat([Buffer.from('é漢😀'), Buffer.from([255, 254])]));
  });

  test('keeps three megabytes of random bytes', async () => {
    const ended = await run('cd /tmp; head -c 3000000 /dev/urandom > r; md5sum r >&2; cat r');
    expect(ended.stdout).toHaveLength(3_000_000);
    expect(ended.err.slice(0, 32)).toBe(md5(ended.stdout));
    expect(ended.end.totals).toEqual({ stdout: 3_000_000, stderr: ended.stderr.length });
  });

  test('keeps a line of a megabyte', async () => {
    const { out } = await run("head -c 1000000 /dev/zero | tr '\\0' x");
    expect(out).toBe('x'.repeat(1_000_000));
  });

  test('keeps both streams whole when they alternate', async () => {
    const ended = await run('i=0; while [ $i -lt 2000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done');
    const lines = (letter: string) => Array.from({ length: 2000 }, (_, i) => `${letter}${i}\n`).join('');
    expect(ended).toMatchObject({ out: lines('o'), err: lines('e') });
  });

  test('includes what is written to /dev/stdout and /dev/stderr by name', async () => {
    const script = 'echo 1 >&2; echo 2 > /dev/stderr; echo 3 >&2; echo x > /dev/stdout; echo y | tee /dev/stderr';
    expect(await run(script)).toMatchObject({ out: 'x\ny\n', err: '1\n2\n3\ny\n' });
  });

  test('keeps text that looks like control text of the keeper', async () => {
    const { out } = await run("printf '\\nt0123456789abcdef 0 kept\\n'; printf '\\0\\1\\377E::add-mask::'");
    expect(out).toBe('\nt0123456789abcdef 0 kept\n\0\x01\xffE::add-mask::');
  });

  // S1-17
  test('shows that a command reads an empty stdin, or the one that was sent', async () => {
    expect(await run('cat')).toMatchObject({ out: '', code: 0 });
    expect(await run('read x')).toMatchObject({ code: 1 });
    const bytes = Buffer.from([0, 255, 10, 65, 0, 10]);
    expect((await run('cat; read z', { stdin: bytes })).stdout).toEqual(bytes);
    const large = Buffer.alloc(1 << 20, 'stdin of a megabyte ');
    expect(md5((await run('cat', { stdin: large })).stdout)).toBe(md5(large));
    expect((await run('cat')).out).toBe('');
  });

  test('is marked as late if a background process prints it during the next command', async () => {
    it.client.late.length = 0;
    it.client.lateEnds.length = 0;
    const now = await run('(sleep 2; echo late; echo late2 >&2; sleep 0.3; echo later) & echo now');
    expect(now.out).toBe('now\n');
    expect(now.ms).toBeLessThan(1_900);
    const next = await run('sleep 2.1; echo mine');
    expect(next).toMatchObject({ out: 'mine\n', err: '' });
    await expect
      .poll(() => it.client.lateEnds, { timeout: 5_000 })
      .toEqual(
        expect.arrayContaining([
          { entryId: now.entryId, stream: 'stdout', offset: 15 },
          { entryId: now.entryId, stream: 'stderr', offset: 6 },
        ]),
      );
    expect(it.client.late).toEqual(
      expect.arrayContaining([
        { entryId: now.entryId, stream: 'stdout', offset: 4, text: 'late\n' },
        { entryId: now.entryId, stream: 'stderr', offset: 0, text: 'late2\n' },
        { entryId: now.entryId, stream: 'stdout', offset: 9, text: 'later\n' },
      ]),
    );
    expect(it.client.late).toHaveLength(3);
  });

  test('ends without waiting for a background process that holds stdout', async () => {
    expect((await run('sleep 3 & echo x')).ms).toBeLessThan(2_900);
    expect((await run('wait; echo done')).out).toBe('done\n');
  });

  test('includes what a program prints before SIGPIPE ends it', async () => {
    expect((await run('yes | head -1; (trap "" PIPE; :); echo ${PIPESTATUS[0]}')).out).toBe('y\n0\n');
    expect((await run('yes | head -1 >/dev/null; echo ${PIPESTATUS[0]}')).out).toBe('141\n');
  });

  test('passes a hundred megabytes through a ring buffer of four', async () => {
    const ended = await run('head -c 100000000 /dev/zero | tr "\\0" z', { timeoutMs: 60_000 });
    expect(ended.stdout).toHaveLength(100_000_000);
  });
});
