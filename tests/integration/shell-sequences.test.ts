// Sequences of commands that each do something unusual to the shell. After any of them, every command runs exactly
// once.
import { describe, expect, test } from 'vitest';
import { openBox, type ShellBox } from '../support/shell-box.ts';
import type { RunOptions } from '../support/shell-client.ts';

const ODD_COMMANDS = [
  ...[':', 'set -x', 'set +x', 'set -e', 'set +e', 'set -u', 'set -f', 'set -n', 'set -- a b c', 'set --'],
  ...['trap "echo T" EXIT', 'trap - EXIT', 'trap "echo U" USR1', 'kill -USR1 $$', 'trap "" URG'],
  ...['trap : DEBUG 2>/dev/null', 'trap - DEBUG 2>/dev/null'],
  ...['exec 3</dev/null', 'exec 1>&2', 'exec 2>/dev/null', 'exec </dev/null', 'exec 0<&- 1>&- 2>&-'],
  ...['exit 3', 'exit 0', 'false', '(exit 7)', 'return 5', 'break', 'continue', 'shift 99', '${nosuch:?bad}'],
  ...['IFS=x', 'unset IFS', 'PATH=/none', 'PATH=/usr/bin:/bin', '__sf_rc=5', '__sf_busy='],
  ...['alias read=false', 'unalias -a', 'printf() { echo F; }', 'read() { false; }', 'test() { false; }'],
  ...['command() { return 0; }', 'enable -n command printf 2>/dev/null; :', 'enable -n read 2>/dev/null; :'],
  ...['enable -d __sf_step 2>/dev/null; :', 'enable -n __sf_step 2>/dev/null; :', '(__sf_step 0) 2>/dev/null; :'],
  ...['enable -n trap 2>/dev/null; :', 'shopt -s lastpipe extdebug 2>/dev/null'],
  ...['(set -o posix) 2>/dev/null && set -o posix; :', 'set +o posix 2>/dev/null'],
  ...['cd /', 'cd /proc', 'umask 077', 'ulimit -n 64', 'sleep 0.02 &', 'wait', 'eval "n=$n"'],
  ...['echo out; echo err >&2', 'yes | head -c 70000', 'exec true'],
  ...['readonly __sf_odd', 'unset __sf_token', 'unset __sf_line __sf_dir', 'unset __sf_rc; exit 2'],
  ...['declare -i __sf_line 2>/dev/null; :', 'alias alias=false; :', 'FUNCNEST=3', 'kill -TERM $$'],
  ...['rm -f /run/shellfleet/state', 'rm -f /run/shellfleet/stdout', 'chmod 000 /run/shellfleet/old'],
];
const OPTIONS: RunOptions[] = [{}, {}, {}, {}, { cwd: '/tmp' }, { env: { E: '1' } }, { stdin: Buffer.from('in') }];
const SEQUENCES = 12;
const COMMANDS_EACH = 60;
const IN_TIME = { timeoutMs: 10_000, killGraceMs: 500 };

/** Returns numbers from 0 to 1, which are the same for the same seed (Numerical Recipes, ranqd1). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Counts each command in the shell's variable `n`. Ends early when a command has ended the shell. */
async function runSequence({ client }: ShellBox, random: () => number): Promise<{ commands: string[]; n: number }> {
  const commands: string[] = [];
  const { shellNumber } = client.shell.hello;
  await client.run('n=0');
  for (let n = 1; n <= COMMANDS_EACH; n++) {
    const odd = ODD_COMMANDS[Math.floor(random() * ODD_COMMANDS.length)]!;
    const rest = ['', '', ' ', '\nn=$((n+0))'][Math.floor(random() * 4)]!;
    const pickOptions = () => ({ ...IN_TIME, ...OPTIONS[Math.floor(random() * OPTIONS.length)] });
    commands.push(`n=$((n+1)); ${odd}${rest}`);
    const ran = await client.run(commands.at(-1)!, pickOptions());
    const look = await client.run('echo "n=$n"', pickOptions());
    if ([ran, look].some((each) => each.state === 'lost' || each.end.shell.shellNumber !== shellNumber)) break;
    // If an earlier command has closed or moved stdout, or turned on a trace, the number may be on stderr.
    const seen = Number(/n=(\d+)/.exec(look.out + look.err)?.[1]);
    if (seen !== n) return { commands, n: seen };
  }
  return { commands, n: commands.length };
}

describe('a sequence of unusual commands', () => {
  test.each([
    ['dash', 'dashOnly'],
    ['ash', 'busybox'],
    ['bash', 'session'],
    ['bash without the builtin', 'session', { SF_LOOP: '1' }],
  ] as const)('runs each command exactly once in %s', async (_, image, env: Record<string, string> = {}) => {
    for (let seed = 1; seed <= SEQUENCES; seed++) {
      await using box = await openBox({ image, env });
      const { commands, n } = await runSequence(box, randomNumbers(seed * 1_000_003));
      expect(n, `seed ${seed}:\n${commands.join('\n')}`).toBe(commands.length);
    }
  });
});
