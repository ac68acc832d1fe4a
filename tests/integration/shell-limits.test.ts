// A session at the limit of its processes, of its time a thousand times over, and of its own folder.
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { type ImageName, openBox, type ShellBox, useBox } from '../support/shell-box.ts';

const killGraceMs = 600;
const shells: [string, ImageName, number][] = [
  ['bash', 'session', 1_000],
  ['dash', 'dashOnly', 300],
  ['busybox ash', 'busybox', 300],
];

/** What is a little below the limit at one moment is at it at another, and ends then at the latest when the next command begins. */
async function bombIsGone({ client }: ShellBox): Promise<void> {
  const left = async () => {
    expect((await client.run('echo ok')).out).toBe('ok\n');
    return (await client.shell.background()).length;
  };
  await expect.poll(left, { timeout: 10_000 }).toBeLessThan(5);
}

describe.each(shells)('%s', (name, image, timeouts) => {
  const resumed = name === 'bash' ? 'kept' : 'partial';

  test('a fork bomb left in the background: the next command answers, forking or not', async () => {
    await using it = await openBox({ image, pids: 64 });
    for (let round = 0; round < 5; round++) {
      const bomb = await it.client.run(`J=${round}; f() { f | f & }; f`, { timeoutMs: 2_000, killGraceMs });
      const next = await it.client.run('echo "ok $J"', { timeoutMs: 2_000, killGraceMs });
      // bash itself may end where it cannot fork; then it is said
      const kept = bomb.state === 'lost' ? '' : round;
      expect(next).toMatchObject({ out: `ok ${kept}\n`, code: 0 });
      expect(next.ms).toBeLessThan(1_500);
      // dash and ash do not try a refused fork again; the one after finds the bomb gone
      const forking = await it.client.run('(echo forked)', { timeoutMs: 4_000, killGraceMs });
      expect(forking.end.reason).toBe('exited');
      expect(await it.client.run('(echo forked "$J")')).toMatchObject({ out: `forked ${kept}\n`, code: 0 });
    }
    await bombIsGone(it);
  });

  test('a fork bomb in the foreground ends with its command, and its shell goes on', async () => {
    await using it = await openBox({ image, pids: 64 });
    const script = 'J=1; f() { f | f & }; f; while :; do :; done';
    const bomb = await it.client.run(script, { timeoutMs: 800, killGraceMs });
    expect(['wall', 'exited']).toContain(bomb.end.reason); // ash ends a command that it cannot fork for
    expect(bomb.end.shell).toMatchObject({ shellNumber: 1 });
    expect((await it.client.run('(echo "forked $J")')).out).toBe('forked 1\n');
    await bombIsGone(it);
  });

  test(`${timeouts} stops in a row at awkward moments lose no shell`, { timeout: 120_000 }, async () => {
    await using it = await openBox({ image });
    const scripts = [
      'while :; do :; done',
      'exit 1',
      'while :; do (X=1); done',
      'f() { while :; do eval "x=1"; done; }; f',
      'true',
      'read x <>/tmp/none; while :; do set -- a b; done',
    ];
    const outcomes: Record<string, number> = {};
    for (let i = 0; i < timeouts; i++) {
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
      const ended = await running;
      outcomes[ended.state] = (outcomes[ended.state] ?? 0) + 1;
      expect(['wall', 'exited', 'cancelled']).toContain(ended.end.reason);
      if (i % 10 === 0) expect(await it.client.run('echo "alive ${C+set}"')).toMatchObject({ code: 0 });
    }
    expect(outcomes).not.toHaveProperty('lost');
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

  test('a folder of its own that the user has filled is made room in, and that is said', async () => {
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
