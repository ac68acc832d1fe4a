// A session that has reached its limit of processes.
import { describe, expect, test } from 'vitest';
import { type ImageName, openBox, type ShellBox } from '../support/shell-box.ts';
import type { Ran } from '../support/shell-client.ts';

const killGraceMs = 600;
const shells: [string, ImageName][] = [
  ['bash', 'session'],
  ['dash', 'dashOnly'],
  ['busybox ash', 'busybox'],
];

/**
 * Waits until the bomb is gone. A bomb just below the limit may reach it later. The keeper ends it at the latest when
 * the next command begins.
 */
async function bombIsGone({ client }: ShellBox, shellNumber: number): Promise<void> {
  const left = async () => {
    expect(await client.run('echo ok')).toMatchObject({ out: 'ok\n', end: { shell: { shellNumber } } });
    return (await client.shell.background()).length;
  };
  await expect.poll(left, { timeout: 10_000 }).toBeLessThan(5);
}

/**
 * Forks in a command. dash and ash do not retry a refused fork. The command that finds the limit reached fails then,
 * and the bomb ends with it or has just ended, so that the next one forks.
 */
async function forks({ client }: ShellBox): Promise<Ran> {
  const run = () => client.run('(echo forked "$J")', { timeoutMs: 4_000, killGraceMs });
  const first = await run();
  if (first.code === 0) return first;
  expect(first.end.reason).toBe('exited');
  return await run();
}

describe.each(shells)('a fork bomb in %s', (name, image) => {
  test('does not block later commands when it runs in the background', async () => {
    await using it = await openBox({ image, pids: 64 });
    let shellNumber = 1;
    for (let round = 0; round < 5; round++) {
      const bomb = await it.client.run(`J=${round}; f() { f | f & }; f`, { timeoutMs: 2_000, killGraceMs });
      // Only bash may end when it cannot fork. The Result then reports a lost shell, and the next shell has the next
      // number.
      const isLost = name === 'bash' && bomb.state === 'lost';
      if (isLost) shellNumber += 1;
      const variable = isLost ? '' : round;
      const next = await it.client.run('echo "ok $J"', { timeoutMs: 2_000, killGraceMs });
      expect(next).toMatchObject({ out: `ok ${variable}\n`, code: 0, end: { shell: { shellNumber } } });
      expect(next.ms).toBeLessThan(1_500);
      expect(await forks(it)).toMatchObject({ out: `forked ${variable}\n`, code: 0, end: { shell: { shellNumber } } });
    }
    await bombIsGone(it, shellNumber);
  });

  test('ends with its command in the foreground, and the shell stays', async () => {
    await using it = await openBox({ image, pids: 64 });
    const script = 'J=1; f() { f | f & }; f; while :; do :; done';
    const bomb = await it.client.run(script, { timeoutMs: 800, killGraceMs });
    expect(['wall', 'exited']).toContain(bomb.end.reason); // ash ends a command for which it cannot fork
    expect(bomb.end.shell).toMatchObject({ shellNumber: 1 });
    expect((await it.client.run('(echo "forked $J")')).out).toBe('forked 1\n');
    await bombIsGone(it, 1);
  });
});

describe('processes of earlier commands', () => {
  test('are ended when they keep a command from forking, and its Result reports that', async () => {
    await using it = await openBox({ pids: 64 });
    // With timer slack, bash fails if a fork is possible less than that after it was refused.
    expect(await it.client.run('cat /proc/self/timerslack_ns')).toMatchObject({ out: '1\n' });
    await it.client.run('for i in $(seq 40); do sleep 300 & done');
    const next = await it.client.run('for i in $(seq 30); do sleep 301 & done; echo forked', { timeoutMs: 20_000 });
    expect(next).toMatchObject({ out: 'forked\n', code: 0, state: 'partial' });
    // A process that is just becoming its program has no command to list.
    const left = async () => (await it.client.shell.background()).map(({ command }) => command);
    await expect.poll(left).toEqual(Array(30).fill('sleep 301'));
  });
});
