// The user's traps: they run when they must, and never replace the session's own.
import { type Case, ends, prints } from './case.ts';

export const traps: Case[] = [
  {
    // S1-10
    title: 'an EXIT trap runs when its own command exits, and the state is kept',
    steps: [
      prints('V=1', ''),
      ends("trap 'echo bye; echo err >&2' EXIT; exit 6", { code: 6, out: 'bye\n', err: 'err\n', state: 'resumed' }),
      prints('echo "$V"', '1\n'),
      { restart: { out: '' } },
    ],
  },
  {
    title: 'a trap of 0 is an EXIT trap, and a trap of 1 is not',
    steps: [
      prints("V=1; trap 'echo hung up' 1; kill -1 $$", 'hung up\n'),
      ends("trap 'echo bye' 0; exit 6", { code: 6, out: 'bye\n', err: '', state: 'resumed' }),
      prints('echo $V', '1\n'),
    ],
  },
  {
    title: "an EXIT trap sees no trap of the shell's loop",
    in: ['bash'],
    steps: [ends("trap 'trap -p EXIT; echo listed' EXIT; exit 6", { code: 6, out: 'listed\n' })],
  },
  {
    title: 'an EXIT trap calls a function, sees $? and exits with another code',
    steps: [
      prints('V=1', ''),
      ends('clean() { echo "clean $?"; exit 9; }; trap clean EXIT; exit 6', {
        code: 9,
        out: 'clean 6\n',
        state: 'resumed',
      }),
      prints('echo "$V"', '1\n'),
    ],
  },
  {
    title: 'an EXIT trap runs also when set -e ends its command',
    steps: [
      ends("set -e; trap 'echo bye' EXIT; (exit 3); echo no", { code: 3, out: 'bye\n', state: 'resumed' }),
      prints('echo ok', 'ok\n'),
    ],
  },
  {
    title: 'an EXIT trap runs also when its command runs out of time',
    steps: [
      ends(
        "trap 'echo bye' EXIT; while :; do :; done",
        { out: 'bye\n', state: 'resumed' },
        { timeoutMs: 200, killGraceMs: 1_000 },
      ),
      prints('echo ok', 'ok\n'),
    ],
  },
  {
    title: 'an EXIT trap runs in the POSIX mode of bash, which has no function named trap',
    in: ['bash'],
    steps: [
      prints('set -o posix', ''),
      ends("trap 'echo bye' EXIT; exit 6", { code: 6, out: 'bye\n', err: '', state: 'resumed' }),
      prints("trap 'echo hung up' 1; kill -1 $$", 'hung up\n'),
      prints('alias; set +o posix', ''),
      ends("trap 'echo bye' EXIT; exit 6", { code: 6, out: 'bye\n', err: '', state: 'resumed' }),
    ],
  },
  {
    title: 'an EXIT trap that a function of an earlier command sets runs when the shell ends',
    steps: [
      prints("f() { trap 'echo bye' EXIT; }", ''),
      prints('f', ''),
      prints('echo ok', 'ok\n'),
      { restart: { out: 'bye\n' } },
    ],
  },
  {
    title: 'an EXIT trap of an earlier command is kept by a shell that continues after a signal',
    in: ['bash'],
    steps: [
      prints("V=1; trap 'echo bye' EXIT", ''),
      ends('kill $$', { state: 'signalled' }),
      prints('echo $V', '1\n'),
      { restart: { out: 'bye\n' } },
    ],
  },
  {
    title: 'an EXIT trap of an earlier command runs when the shell ends',
    steps: [
      prints("trap 'echo bye' EXIT", ''),
      prints('echo not yet', 'not yet\n'),
      ends('exit 2', { code: 2, out: '' }),
      { restart: { out: 'bye\n', code: 0, state: 'lost' } },
      prints('echo ok', 'ok\n'),
      { restart: { out: '' } },
    ],
  },
  {
    title: 'the last EXIT trap runs, and a removed one does not',
    steps: [
      prints("trap 'echo one' EXIT", ''),
      prints("trap 'echo \"it'\\''s\"; echo two' 0", ''),
      { restart: { out: "it's\ntwo\n" } },
      prints("trap 'echo one' EXIT", ''),
      prints('trap - EXIT', ''),
      { restart: { out: '' } },
    ],
  },
  {
    title: 'an EXIT trap of a subshell runs at the end of the subshell',
    steps: [
      prints("(trap 'echo sub' EXIT); echo main", 'sub\nmain\n'),
      prints('x=$(trap \'echo sub\' EXIT); echo "[$x]"', '[sub]\n'),
      { restart: { out: '' } },
    ],
  },
  {
    title: 'INT, TERM and USR1 traps work, also after exit',
    steps: [
      prints("trap 'echo int' INT; trap 'echo term' TERM; trap 'echo usr1' USR1", ''),
      prints('kill -INT $$; kill -TERM $$; kill -USR1 $$', 'int\nterm\nusr1\n'),
      ends('exit 1', {}),
      prints('kill -INT $$; kill -TERM $$; kill -USR1 $$', 'int\nterm\nusr1\n'),
      prints('trap - INT TERM USR1; trap', /^((?!int|term|usr1)[\s\S])*$/),
    ],
  },
  {
    title: 'ignored signals stay ignored',
    steps: [
      prints("trap '' INT TERM HUP", ''),
      prints('kill -INT $$; kill -TERM $$; kill -HUP $$; echo alive', 'alive\n'),
      ends('while :; do :; done', { state: 'resumed' }, { timeoutMs: 200, killGraceMs: 600 }),
      prints('kill -INT $$; echo alive', 'alive\n'),
    ],
  },
  {
    title: 'the private signal of the session ends the command when the user sends it',
    steps: [prints('V=1', ''), ends('kill -URG $$; echo no', { code: 143, out: '' }), prints('echo "$V"', '1\n')],
  },
  {
    title: 'a function of the user with the name trap is called',
    in: ['bash'],
    steps: [
      prints('trap() { echo "mine $*"; }', ''),
      prints('trap x EXIT', 'mine x EXIT\n'),
      prints('unset -f trap; trap "echo bye" EXIT', ''),
      { restart: { out: 'bye\n' } },
    ],
  },
  {
    title: 'trap lists traps and refuses unknown signals',
    steps: [
      prints("trap 'echo u' USR1; trap", /trap -- 'echo u' (SIG)?USR1\n/),
      ends('trap x NOSUCH', { err: /NOSUCH/ }),
    ],
  },
  {
    title: 'an EXIT trap from a sourced file or eval runs when the shell ends',
    steps: [
      prints("V=1; echo 'tr''ap \"echo bye\" EXIT' > /tmp/sets-it", ''),
      prints('. /tmp/sets-it', ''),
      ends('exit 3', { code: 3, out: '', state: 'resumed' }),
      prints('echo "$V"', '1\n'),
      { restart: { out: 'bye\n' } },
      prints('V=2; eval "tr""ap \'echo later\' EXIT"', ''),
      prints('echo "$V"', '2\n'),
      ends('exit 4', { code: 4, out: '', state: 'resumed' }),
      prints('echo "$V"', '2\n'),
      { restart: { out: 'later\n' } },
    ],
  },
  {
    title: 'a command can be stopped after another one has removed all traps',
    steps: [
      prints('V=1; eval "tr""ap - EXIT URG"', ''),
      ends('while :; do :; done', { state: 'resumed' }, { timeoutMs: 200, killGraceMs: 600 }),
      prints('echo "$V"', '1\n'),
    ],
  },
];
