// Signals that a shell traps, and that reach it while it executes itself again to continue from its saved state.
import { describe, expect, test } from 'vitest';
import { type BoxOptions, useBox } from '../support/shell-box.ts';

const shells: [string, BoxOptions][] = [
  ['bash', { image: 'session' }],
  ['bash without the builtin', { image: 'session', env: { SF_LOOP: '1' } }],
  ['dash', { image: 'dashOnly' }],
  ['ash', { image: 'busybox' }],
];

/** Sends the shell a signal that it traps, again and again, until that shell is gone or traps it no more. */
const flood = `V=1; n=0; trap 'n=$((n+1))' USR1; shell=$$; rm -f /tmp/over
  ( (while [ ! -e /tmp/over ] && kill -USR1 $shell; do :; done) & ) 2>/dev/null`;

describe.each(shells)('%s that executes itself again among signals that it traps', (name, options) => {
  const it = useBox(options);
  const run: typeof it.client.run = (script) => it.client.run(script, { timeoutMs: 5_000, killGraceMs: 600 });
  const isBuiltin = name === 'bash';

  test(isBuiltin ? 'keeps its state' : 'keeps its state or ends, and then a fresh one follows', async () => {
    await run(flood);
    for (let i = 0; i < 30; i++) {
      const exited = await run('exit 3');
      if (isBuiltin) expect(exited).toMatchObject({ code: 3, end: { reason: 'exited' }, state: 'kept' });
      const next = await run('echo "[$V]"');
      expect(next.out).toBe(exited.state === 'lost' ? '[]\n' : '[1]\n');
      if (exited.state === 'lost') await run(flood);
    }
    await run(': >/tmp/over');
    expect((await run('echo "[$V]"')).out).toBe('[1]\n');
  });
});

describe('a bash with the builtin that has executed itself again', () => {
  const it = useBox();
  const run: typeof it.client.run = (script) => it.client.run(script, { timeoutMs: 5_000 });
  const blocked = 'grep SigBlk /proc/self/status';
  const none = 'SigBlk:\t0000000000000000\n';

  test('runs its traps, and its programs begin with no signal blocked', async () => {
    await run("V=1; trap 'echo usr1' USR1; trap 'echo term' TERM; trap '' HUP");
    expect(await run('exit 3')).toMatchObject({ code: 3, state: 'kept' });
    expect((await run(blocked)).out).toBe(none);
    expect((await run('kill -USR1 $$; kill -TERM $$; kill -HUP $$; echo "$V"')).out).toBe('usr1\nterm\n1\n');
  });

  test('runs its traps when a command has closed the file of the builtin', async () => {
    await run("V=1; trap 'echo usr1' USR1");
    const closing = await run('eval "exec ${__sf_library##*/}<&-"; exit 3');
    expect(closing).toMatchObject({ code: 3, end: { way: 'loop' } });
    expect((await run(blocked)).out).toBe(none);
    expect((await run('kill -USR1 $$; echo "$V"')).out).toBe('usr1\n1\n');
  });
});
