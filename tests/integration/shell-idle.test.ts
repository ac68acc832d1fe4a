// Signals that reach a shell between two commands. The next command runs nevertheless, even one with its own directory.
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type ImageName, type ShellBox, useBox } from '../support/shell-box.ts';

const images: [string, ImageName][] = [
  ['bash', 'session'],
  ['dash', 'dashOnly'],
  ['ash', 'busybox'],
];

/** Takes a while. The image of dash has no `sleep`. */
const pause = 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done';

/**
 * Sends the signals to the shell one after another while no command runs. After each it runs the script that `after`
 * returns for their number so far.
 */
async function signal(
  { client }: ShellBox,
  signals: string[],
  after: (count: number) => string = () => pause,
): Promise<void> {
  const kills = signals.map((name, index) => `kill -${name} $shell; ${after(index + 1)}; `).join('');
  const before = client.late.length;
  await client.run(`shell=$$; { ${pause}; ${kills} echo sent; } & :`);
  await expect
    .poll(() =>
      client.late
        .slice(before)
        .map(({ text }) => text)
        .join(''),
    )
    .toBe('sent\n');
}

describe.each(images)('%s between two commands', (shell, image) => {
  const it = useBox({ image });

  test('keeps its state when it traps signals', async () => {
    await it.client.run('V=1; trap \'n=${n}x; : > "/tmp/trap-${#n}"\' USR1');
    // Signals of one kind that are pending at the same time are one signal, so each follows the trap for the last.
    await signal(it, Array(12).fill('USR1'), (count) => `until [ -e /tmp/trap-${count} ]; do :; done; ${pause}`);
    expect(await it.client.run('pwd; echo "$V $n"', { cwd: '/proc' })).toMatchObject({
      out: `/proc\n1 ${'x'.repeat(12)}\n`,
      state: 'kept',
    });
    expect(await it.client.run('trap - USR1; echo "$V"')).toMatchObject({ out: '1\n', state: 'kept' });
  });

  test('keeps its state when it traps more signals than it may miss lines', async () => {
    // How many pending signals become one depends on the scheduler, so they are sent until enough were trapped. A trap
    // that comes in the middle of `m=$((m+1))` is not in the final number.
    await it.client.run("V=1; m=0; trap 'm=$((m+1)); [ $m -le 100 ] || : > /tmp/enough' USR1");
    await signal(it, ['USR1'], () => 'until [ -e /tmp/enough ]; do kill -USR1 $shell; done');
    expect(await it.client.run('trap - USR1; echo "$V"')).toMatchObject({ out: '1\n', state: 'kept' });
  });

  test('runs the next command when a process has stopped it', async () => {
    await it.client.run('V=1');
    await signal(it, ['STOP']);
    const next = await it.client.run('echo "$V"', { timeoutMs: 2_000 });
    expect(next).toMatchObject({ out: '1\n', state: 'kept', end: { reason: 'exited' } });
  });

  test('keeps its state when a time limit for `read` passes', async () => {
    await it.client.run('V=1; TMOUT=0.002; set -- a'); // which bash gives to the loop
    await delay(500);
    expect(await it.client.run('set --; unset -v TMOUT; echo "$V"')).toMatchObject({ out: '1\n', state: 'kept' });
  });

  test('is replaced before the next command after a trap that runs `set -n`', async () => {
    await it.client.run("V=1; trap 'set -n' USR1");
    await signal(it, ['USR1']);
    const next = await it.client.run('echo "[$V]"', { timeoutMs: 2_000 });
    // The loop of bash takes the line of the next command before it ends.
    expect(next).toMatchObject({ out: '[]\n', state: 'lost', end: { reason: 'exited' } });
  });

  test('re-executes itself after a trap that exits, and reports lost state', async () => {
    await it.client.run("V=1; f() { echo f; }; trap 'exit 4' USR1");
    await signal(it, ['USR1']);
    expect(await it.client.run('pwd; echo "$V"', { cwd: '/proc' })).toMatchObject({
      code: 0,
      out: '/proc\n1\n',
      end: { shell: { state: 'partial', reason: expect.stringContaining(shell === 'bash' ? 'jobs' : 'functions') } },
    });
    expect(await it.client.run('trap - USR1; echo "$V"')).toMatchObject({ out: '1\n', state: 'kept' });
  });
});
