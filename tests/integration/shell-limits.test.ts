// A session whose commands are stopped hundreds of times, and one whose keeper's directory is full.
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { type ImageName, openBox, useBox } from '../support/shell-box.ts';

const killGraceMs = 600;
/** Name, image and the number of stops to survive. */
const shells: [string, ImageName, number][] = [
  ['bash', 'session', 400],
  ['dash', 'dashOnly', 200],
  ['busybox ash', 'busybox', 200],
];

describe.each(shells)('a shell of %s', (name, image, stops) => {
  const resumed = name === 'bash' ? 'kept' : 'partial';

  test(`survives ${stops} stops at awkward moments`, { timeout: 240_000 }, async () => {
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
    // Both kinds of stop occurred. Some commands had ended by themselves before their stop.
    expect(counts.wall).toBeGreaterThan(stops / 2);
    expect(counts.cancelled).toBeGreaterThan(stops / 20);
    expect(await it.client.run('echo $-')).toMatchObject({ code: 0, end: { shell: { shellNumber: 1 } } });
  });

  test.each(['socket', 'attach'] as const)('runs a script of 1 MiB completely over %s', async (transport) => {
    await using it = await openBox({ image, transport });
    const script = (bytes: number) => `v='${'x'.repeat(bytes)}'; echo \${#v} end`;
    const bytes = (1 << 20) - script(0).length;
    expect(await it.client.run(script(bytes))).toMatchObject({ out: `${bytes} end\n`, err: '', code: 0 });
    expect(await it.client.run('echo ${#v}')).toMatchObject({ out: `${bytes}\n`, state: 'kept' });
  });

  test('completes a restart after a stop, and a hundred cancels of one command', async () => {
    await using it = await openBox({ image });
    // A stop that arrives before the shell is ready ends its command without a shell, and loses no state.
    await it.client.run('true');
    for (let i = 0; i < 20; i++) {
      const entryId = ulid();
      const running = it.client.run('while :; do :; done', { entryId, timeoutMs: 5_000 });
      for (let k = 0; k < 100; k++) it.client.shell.stop(entryId, { killGraceMs });
      expect((await running).end).toMatchObject({ reason: 'cancelled', shell: { state: resumed } });
      expect(await it.client.restart()).toMatchObject({ code: 0, state: 'lost' });
      expect((await it.client.run('echo ok')).out).toBe('ok\n');
    }
  });

  test('makes room in its full directory, and reports that in the Result', async () => {
    await using it = await openBox({ image });
    const fill =
      'V=1; x=0123456789abcdef; i=0; while [ $i -lt 14 ]; do x=$x$x; i=$((i+1)); done; while echo "$x"; do :; done';
    for (const file of ['junk', 'state', 'command', 'before']) {
      // When no name in the directory has changed for a while, the keeper writes over the files that it holds open.
      await it.client.run('sleep 0.1');
      await it.client.run(':');
      await it.client.run(`{ ${fill}; } >/run/shellfleet/${file} 2>/dev/null`, { timeoutMs: 20_000 });
      const next = await it.client.run('echo "$V"');
      expect(next).toMatchObject({ out: '1\n', code: 0, state: file === 'command' ? expect.anything() : 'partial' });
      expect(await it.client.run('exit 3')).toMatchObject({ code: 3, state: resumed });
      expect((await it.client.run(`echo "\${V}${'y'.repeat(100_000)}"`)).stdout).toHaveLength(100_002);
    }
  });
});

describe('a process that tries to outlive its command', () => {
  const it = useBox();

  test.each([
    ['a process in a new process session', 'setsid sleep 300'],
    ['a new process session in the background', 'setsid sleep 300 & sleep 300'],
    ['a double fork', '( (setsid sh -c "sleep 300" &) & ) ; sleep 300'],
    ['a process that ignores INT and TERM', 'sh -c \'trap "" INT TERM HUP; while :; do sleep 1; done\''],
    [
      'a daemon that ignores INT and TERM',
      '(setsid sh -c \'trap "" INT TERM; while :; do sleep 1; done\' &) ; sleep 300',
    ],
    ['a stopped process', "sh -c 'kill -STOP $$' & sleep 300"],
    ['a process under another name', "bash -c 'exec -a innocent sleep 300'"],
    ['a process substitution', 'cat <(sleep 300) <(sleep 300)'],
    ['a co-process', 'coproc sleep 300; sleep 300'],
  ])('is gone one second after the grace: %s', async (_, script) => {
    const before = await it.client.shell.background();
    const ended = await it.client.run(`echo part; ${script}`, { timeoutMs: 300, killGraceMs: 500 });
    expect(ended).toMatchObject({ out: 'part\n', end: { reason: 'wall' } });
    expect(ended.ms).toBeLessThan(300 + 500 + 1_000);
    expect(await it.client.shell.background()).toEqual(before);
  });
});
