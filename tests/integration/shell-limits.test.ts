// A session at the limit of its processes and of its own folder, and one whose commands are stopped hundreds of times.
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { type ImageName, openBox, type ShellBox, useBox } from '../support/shell-box.ts';

const killGraceMs = 600;
/** Name, image, and how many stops it has to survive. */
const shells: [string, ImageName, number][] = [
  ['bash', 'session', 1_000],
  ['dash', 'dashOnly', 300],
  ['busybox ash', 'busybox', 300],
];

/** A bomb that is a little below the limit at one moment is at it at another, and is ended when the next command begins at the latest. */
async function bombIsGone({ client }: ShellBox, shellNumber: number): Promise<void> {
  const left = async () => {
    expect(await client.run('echo ok')).toMatchObject({ out: 'ok\n', end: { shell: { shellNumber } } });
    return (await client.shell.background()).length;
  };
  await expect.poll(left, { timeout: 10_000 }).toBeLessThan(5);
}

describe.each(shells)('%s', (name, image, stops) => {
  const resumed = name === 'bash' ? 'kept' : 'partial';

  test('a fork bomb left in the background: the next command answers in the same shell, forking or not', async () => {
    await using it = await openBox({ image, pids: 64 });
    let shellNumber = 1;
    for (let round = 0; round < 5; round++) {
      const bomb = await it.client.run(`J=${round}; f() { f | f & }; f`, { timeoutMs: 2_000, killGraceMs });
      // Only bash may end where it cannot fork. Then its Result reports that, and the next shell is the next number.
      const isLost = name === 'bash' && bomb.state === 'lost';
      if (isLost) shellNumber += 1;
      const variable = isLost ? '' : round;
      const next = await it.client.run('echo "ok $J"', { timeoutMs: 2_000, killGraceMs });
      expect(next).toMatchObject({ out: `ok ${variable}\n`, code: 0, end: { shell: { shellNumber } } });
      expect(next.ms).toBeLessThan(1_500);
      // dash and ash do not try a refused fork again; the one after finds the bomb gone
      const forking = await it.client.run('(echo forked)', { timeoutMs: 4_000, killGraceMs });
      expect(forking.end).toMatchObject({ reason: 'exited', shell: { shellNumber } });
      expect(await it.client.run('(echo forked "$J")')).toMatchObject({ out: `forked ${variable}\n`, code: 0 });
    }
    await bombIsGone(it, shellNumber);
  });

  test('a fork bomb in the foreground ends with its command, and its shell goes on', async () => {
    await using it = await openBox({ image, pids: 64 });
    const script = 'J=1; f() { f | f & }; f; while :; do :; done';
    const bomb = await it.client.run(script, { timeoutMs: 800, killGraceMs });
    expect(['wall', 'exited']).toContain(bomb.end.reason); // ash ends a command that it cannot fork for
    expect(bomb.end.shell).toMatchObject({ shellNumber: 1 });
    expect((await it.client.run('(echo "forked $J")')).out).toBe('forked 1\n');
    await bombIsGone(it, 1);
  });

  test(`${stops} stops at awkward moments lose no shell`, { timeout: 240_000 }, async () => {
    await using it = await openBox({ image });
    const scripts = [
      'while :; do :; done',
      'exit 1',
      'while :; do (X=1); done',
      'f() { while :; do eval "x=1"; done; }; f',
      'true',
      'read x <>/tmp/none; while :; do set -- a b; done',
    ];
    const counts: Record<string, number> = { wall: 0, cancelled: 0, exited: 0 };
    for (let i = 0; counts.wall! + counts.cancelled! < stops; i++) {
      const entryId = ulid();
      const byCancel = i % 5 === 4;
      const running = it.client.run(`C=${i}; ${scripts[i % scripts.length]}`, {
        entryId,
        timeoutMs: byCancel ? 5_000 : 1 + (i % 9),
        killGraceMs: 1_500,
      });
      if (byCancel) {
        if (i % 2) await new Promise(setImmediate);
        it.client.shell.stop(entryId, { killGraceMs: 1_500 });
      }
      const { end } = await running;
      expect(['wall', 'cancelled', 'exited']).toContain(end.reason);
      expect({ i, shellNumber: end.shell.shellNumber }).toEqual({ i, shellNumber: 1 });
      counts[end.reason]! += 1;
      if (i % 10 === 0) expect(await it.client.run('echo "alive ${C+set}"')).toMatchObject({ code: 0 });
    }
    // Both kinds happened, and some commands had ended when their stop came.
    expect(counts.wall).toBeGreaterThan(stops / 2);
    expect(counts.cancelled).toBeGreaterThan(stops / 20);
    expect(await it.client.run('echo $-')).toMatchObject({ code: 0, end: { shell: { shellNumber: 1 } } });
  });

  test('a restart that follows a stop, and a hundred cancels of one command, are all answered', async () => {
    await using it = await openBox({ image });
    for (let i = 0; i < 20; i++) {
      const entryId = ulid();
      const running = it.client.run('while :; do :; done', { entryId, timeoutMs: 5_000 });
      for (let k = 0; k < 100; k++) it.client.shell.stop(entryId, { killGraceMs });
      expect((await running).end).toMatchObject({ reason: 'cancelled', shell: { state: resumed } });
      expect(await it.client.restart()).toMatchObject({ code: 0, state: 'lost' });
      expect((await it.client.run('echo ok')).out).toBe('ok\n');
    }
  });

  test('room is made in its own folder when the user has filled it, and the Result reports that', async () => {
    await using it = await openBox({ image });
    const fill =
      'V=1; x=0123456789abcdef; i=0; while [ $i -lt 14 ]; do x=$x$x; i=$((i+1)); done; while echo "$x"; do :; done';
    for (const file of ['junk', 'state', 'command', 'before']) {
      await it.client.run(`{ ${fill}; } >/run/shellfleet/${file} 2>/dev/null`, { timeoutMs: 20_000 });
      const next = await it.client.run('echo "$V"');
      expect(next).toMatchObject({ out: '1\n', code: 0, state: file === 'command' ? expect.anything() : 'partial' });
      expect(await it.client.run('exit 3')).toMatchObject({ code: 3, state: resumed });
      expect((await it.client.run(`echo "\${V}${'y'.repeat(100_000)}"`)).stdout).toHaveLength(100_002);
    }
  });
});

describe('what tries to outlive its command', () => {
  const it = useBox();

  test.each([
    ['a new session', 'setsid sleep 300'],
    ['a new session, from the background', 'setsid sleep 300 & sleep 300'],
    ['a double fork', '( (setsid sh -c "sleep 300" &) & ) ; sleep 300'],
    ['ignoring INT and TERM', 'sh -c \'trap "" INT TERM HUP; while :; do sleep 1; done\''],
    [
      'a daemon that ignores INT and TERM',
      '(setsid sh -c \'trap "" INT TERM; while :; do sleep 1; done\' &) ; sleep 300',
    ],
    ['stopped', "sh -c 'kill -STOP $$' & sleep 300"],
    ['a name of its own', "bash -c 'exec -a innocent sleep 300'"],
    ['a process substitution', 'cat <(sleep 300) <(sleep 300)'],
    ['a co-process', 'coproc sleep 300; sleep 300'],
  ])('%s: nothing of its tree is left one second after the grace', async (_, script) => {
    const before = await it.client.shell.background();
    const ended = await it.client.run(`echo part; ${script}`, { timeoutMs: 300, killGraceMs: 500 });
    expect(ended).toMatchObject({ out: 'part\n', end: { reason: 'wall' } });
    expect(ended.ms).toBeLessThan(300 + 500 + 1_000);
    expect(await it.client.shell.background()).toEqual(before);
  });
});
