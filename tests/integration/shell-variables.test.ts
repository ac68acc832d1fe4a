// Commands that change the variables of the shell's loop. The builtin of bash restores them. Every other shell ends at
// once if it cannot go on, and the Result reports that.
import { describe, expect, test } from 'vitest';
import { type BoxOptions, useBox } from '../support/shell-box.ts';

const shells: [string, BoxOptions][] = [
  ['bash', { image: 'session' }],
  ['bash without the builtin', { image: 'session', env: { SF_LOOP: '1' } }],
  ['dash', { image: 'dashOnly' }],
  ['ash', { image: 'busybox' }],
];

const every = '__sf_dir __sf_fd __sf_script __sf_loop __sf_rc __sf_token __sf_busy __sf_line __sf_odd __sf_notes';
const others =
  '__sf_extra __sf_missed __sf_stopped __sf_status __sf_step __sf_held __sf_input __sf_trace __sf_errexit __sf_seen';

const changes: [string, string][] = [
  ['unset', `unset ${every} ${others}`],
  ['unset, except for the run token', 'unset __sf_dir __sf_rc __sf_fd __sf_line __sf_odd'],
  ['unset (the run token alone)', 'unset __sf_token'],
  ['empty', '__sf_token= __sf_dir= __sf_fd= __sf_script='],
  ['paths of another place', '__sf_dir=/tmp __sf_script=/tmp/other'],
  ...[...every.split(' '), ...others.split(' ')].map((name): [string, string] => [
    `read-only (${name})`,
    `readonly ${name}`,
  ]),
];
const changesOfBash: [string, string][] = [
  ['unset under set -u', 'set -u; unset ${!__sf_@}'],
  ['read-only', 'declare -r ${!__sf_@}'],
  ['numbers', 'declare -i ${!__sf_@}'],
  ['numbers that are read-only', 'declare -ir ${!__sf_@}'],
  ['of capital letters', 'declare -u ${!__sf_@}'],
  ['references', 'unset -v __sf_line __sf_odd; declare -n __sf_line="A[1/0]" __sf_odd=B'],
];

describe.each(shells)('%s, whose loop has variables', (name, options) => {
  const it = useBox(options);
  const isBuiltin = name === 'bash';
  const within = { timeoutMs: 5_000 };
  const all = name.startsWith('bash') ? [...changes, ...changesOfBash] : changes;

  /** Runs a script. It prints nothing, does not wait, and its Result tells whether the next command has the state. */
  async function runs(script: string, options = {}): Promise<{ isKept: boolean; code: number | null }> {
    const { client } = it;
    await client.restart();
    await client.run('V=1');
    const ran = await client.run(script, { ...within, ...options });
    const next = await client.run('echo "[$V]"', within);
    const last = await client.run('set +u; echo "[$V]"', { ...within, cwd: '/' });
    const states = [ran.state, next.state, last.state];
    expect({ script, out: ran.out, reasons: [ran, next, last].map(({ end }) => end.reason) }).toEqual({
      script,
      out: '',
      // A shell that dies as it gets the next line does not run it.
      reasons: [ran, next, last].map(({ state }) =>
        expect.stringMatching(state === 'lost' ? /exited|signalled/ : /^exited$/),
      ),
    });
    const isKept = !states.includes('lost');
    if (isKept) expect([next.out, last.out]).toEqual(['[1]\n', '[1]\n']);
    // A shell that cannot restore its state ends with another code.
    const exited = await client.run('exit 3', within);
    expect(exited).toMatchObject({ out: '', end: { reason: 'exited' } });
    if (exited.state !== 'lost') expect(exited.code).toBe(3);
    return { isKept: isKept && exited.state !== 'lost', code: ran.code };
  }

  test.each(all)('waits for nothing after a command has made them %s', async (_, script) => {
    const { isKept } = await runs(script);
    if (isBuiltin) expect(isKept).toBe(true);
  });

  test.each(all)('waits for nothing after a command has made them %s and exits', async (_, script) => {
    const { isKept, code } = await runs(`${script}; exit 4`);
    if (isBuiltin) expect({ isKept, code }).toEqual({ isKept: true, code: 4 });
  });

  test.each(all)('can be stopped in a command that has made them %s', async (_, script) => {
    const { client } = it;
    await client.restart();
    await client.run('V=1');
    const stopped = await client.run(`${script}; while :; do :; done`, { timeoutMs: 100, killGraceMs: 600 });
    // In a shell without the builtin the script itself may end at a variable that is read-only.
    if (isBuiltin) expect(stopped).toMatchObject({ out: '', state: 'kept', end: { reason: 'wall' } });
    const next = await client.run('set +u; echo "[$V]"', within);
    // A shell that dies as it gets the next line does not run it.
    if (next.state === 'lost') expect(['', '[]\n']).toContain(next.out);
    else expect(next.out).toBe(stopped.state === 'lost' ? '[]\n' : '[1]\n');
  });
});
