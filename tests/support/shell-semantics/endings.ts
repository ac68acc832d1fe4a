// The ways in which a command can end, and the state that the next one gets.
import { type Case, ends, prints, withPrograms } from './case.ts';

const set = prints('cd /dev; X="it\'s kept"; export Y=exported; set -- one "two  three"', '');
const kept = prints('set +eu; pwd; echo "$X|$Y|$#|$2"', "/dev\nit's kept|exported|2|two  three\n");

/**
 * Signals with their numbers. The exit code is 128 plus the number in every shell and image, as a parent of the shell
 * would report it (S2-29).
 */
const byNumber: [string, number][] = [
  ['SIGHUP', 1],
  ['SIGINT', 2],
  ['SIGUSR1', 10],
  ['SIGPIPE', 13],
  ['SIGALRM', 14],
  ['SIGTERM', 15],
];

/** Checks the state of the new shell process. bash has kept all but open files; dash and ash have kept nothing. */
const keptInBash = prints(
  'echo "${BASH_VERSION+$PWD|$X|$Y|$#|$2}"; unset X Y; set --',
  /^(\/dev\|it's kept\|exported\|2\|two {2}three)?\n$/,
);

const signals: Case[] = [
  ...byNumber.map(
    ([signal, number]): Case => ({
      title: `${signal} to the shell ends the command as a failure with 128 + ${number}`,
      steps: [
        set,
        ends(`echo a; kill -${signal.slice(3)} $$; echo step2`, {
          code: 128 + number,
          out: 'a\n',
          state: 'signalled',
          signal,
        }),
        keptInBash,
      ],
    }),
  ),
  {
    title: 'kill 0 ends the command as a failure, and the next one finds the code in $?',
    steps: [
      ends('kill 0; echo step2', { code: 143, out: '', state: 'signalled', signal: 'SIGTERM' }),
      prints('echo "${BASH_VERSION+$?}"', /^(143)?\n$/),
    ],
  },
  {
    title: 'a signal before an exit decides the end of the command, also under set -e',
    steps: [ends('set -e; cd /tmp; kill -TERM $$; exit 5', { code: 143, state: 'signalled', signal: 'SIGTERM' })],
  },
  {
    title: 'a signal from a background process ends the command while a program runs',
    in: withPrograms,
    steps: [
      {
        ...ends('(sleep 0.2; kill -TERM $$) & sleep 30; echo end', {
          code: 143,
          out: '',
          state: 'signalled',
          signal: 'SIGTERM',
        }),
        withinMs: 15_000,
      },
    ],
  },
  {
    title: 'a signal before which bash runs no trap ends the shell, and the Result reports that',
    in: ['bash'],
    steps: ['SIGPROF', 'SIGPWR', 'SIGSTKFLT'].map((signal) =>
      ends(`kill -${signal.slice(3)} $$; echo no`, { out: '', state: 'lost', signal }),
    ),
  },
  {
    title: 'a signal in a function, a loop or a sourced file keeps most of the state',
    in: ['bash'],
    steps: [
      prints('cd /dev; umask 027; A=global; f() { local A=1; while :; do eval "kill $$"; done; }; set -- one two', ''),
      ends('f three; echo no', { code: 143, out: '', state: 'partial', signal: 'SIGTERM' }),
      prints('echo "$A $# $(pwd) $OLDPWD" && umask && type -t f', /^global 2 \/dev \S+\n0027\nfunction\n$/),
      ends('umask 022; set -- four; echo "kill $$" >/tmp/killing; . /tmp/killing', { code: 143, state: 'partial' }),
      prints('echo "$*"', 'four\n'),
    ],
  },
  {
    title: 'an EXIT trap runs also when a signal ends its command',
    in: ['bash'],
    steps: [
      prints('V=1', ''),
      ends("trap 'echo bye' EXIT; kill -TERM $$; echo no", { code: 143, out: 'bye\n', state: 'partial' }),
      prints('echo "$V"', '1\n'),
      { restart: { out: '' } },
    ],
  },
  {
    title: 'a signal after which the directory is gone is reported by both Results',
    in: ['bash'],
    steps: [
      ends('mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone; kill $$', { code: 143, state: 'partial' }),
      ends('true', { code: 0, state: 'partial' }),
    ],
  },
  {
    title: 'a variable that was unset stays unset in the shell that continues',
    in: ['bash'],
    steps: [ends('unset HOME; kill $$', { state: 'partial' }), prints('echo "${HOME-unset}"', 'unset\n')],
  },
];

export const endings: Case[] = [
  ...signals,
  {
    // S1-19
    title: 'exit ends the command with its code',
    steps: [set, ends('echo a; exit 4; echo b', { code: 4, out: 'a\n', state: 'resumed' }), kept],
  },
  {
    title: 'exit without a code returns the code of the command before it',
    steps: [set, ends('(exit 9); exit', { code: 9 }), kept],
  },
  {
    // S1-56
    title: 'exit in a subshell ends nothing',
    steps: [ends('(exit 5)', { code: 5, state: 'kept' }), prints('echo $?', '5\n')],
  },
  {
    title: 'exit in a function, a loop and eval ends the command',
    steps: [set, ends('f() { while :; do eval "exit 7"; done; }; f', { code: 7 }), kept],
  },
  {
    // S1-19
    title: 'set -e ends the command at the first failure, and stays on',
    steps: [
      set,
      ends('set -e; (exit 3); echo no', { code: 3, out: '' }),
      prints('case $- in *e*) echo on ;; esac', 'on\n'),
      kept,
    ],
  },
  {
    title: 'set -u ends the command',
    steps: [
      set,
      ends('set -u; echo $nosuch; echo no', { out: '', err: /nosuch/ }),
      prints('case $- in *u*) echo on ;; esac', 'on\n'),
      kept,
    ],
  },
  {
    title: '${x:?} ends the command',
    steps: [set, ends('echo ${nosuch:?bad}; echo no', { out: '', err: /bad/ }), kept],
  },
  {
    title: 'a failed special builtin does not end the session',
    steps: [
      set,
      ends('. /no/such/file', { err: /no.such.file/ }),
      ends('shift 99', {}),
      ends('readonly R=1; R=2', {}),
      kept,
    ],
  },
  {
    title: 'break, continue and return at top level end the command, not the session',
    steps: [
      set,
      prints('break', ''),
      prints('continue 7', ''),
      ends('return 3', { code: 3, state: 'kept' }),
      ends('break 9', {}),
      ends('for i in 1 2; do break 9; done', {}),
      kept,
    ],
  },
  {
    // Invariant 5
    title: 'exec of a program ends the shell, and the Result reports that',
    steps: [
      set,
      ends('exec sh -c "echo z; exit 9"', { code: 9, out: 'z\n', state: 'lost' }),
      prints('echo "[$X]"', '[]\n'),
    ],
    in: ['bash', 'ash'],
  },
  {
    title: 'exec -a of a program ends the shell, like exec',
    in: ['bash'],
    steps: [ends('exec -a other true', { code: 0, state: 'lost' })],
  },
  {
    title: 'kill -9 $$ ends the shell, and the Result reports that',
    steps: [set, ends('echo a; kill -9 $$', { code: 137, out: 'a\n', state: 'lost' }), prints('echo "[$X]"', '[]\n')],
  },
  {
    title: 'kill -9 -1 from a child ends the shell but not the session',
    in: ['bash', 'ash'],
    steps: [set, ends('sh -c "kill -9 -1"', { state: 'lost' }), prints('echo ok', 'ok\n')],
  },
  {
    title: 'a shell that stops itself continues at its deadline',
    steps: [set, ends('kill -STOP $$', { state: 'resumed' }, { timeoutMs: 300, killGraceMs: 500 }), kept],
  },
  {
    title: 'a shell after set -n is replaced immediately, and the Result reports that',
    steps: [set, { run: 'set -n', gives: { state: 'lost' }, withinMs: 1_000 }, prints('echo "[$X]"', '[]\n')],
  },
  {
    title: 'a shell after set -o noexec in a function is replaced immediately',
    steps: [{ run: 'f() { set -o noexec; }; f', gives: { state: 'lost' }, withinMs: 1_000 }, prints('echo ok', 'ok\n')],
  },
  {
    title: 'the shell saves its state under a umask of 777',
    steps: [
      set,
      ends('umask 777; exit 3', { code: 3, state: 'resumed' }),
      prints('umask; umask 022', /^0?777\n$/),
      kept,
    ],
  },
  {
    title: 'a shell that can write no file is replaced, and the Result reports that',
    steps: [ends('ulimit -f 0; exit 3', { state: 'lost' }), prints('echo ok', 'ok\n')],
  },
  {
    title: 'a shell that can open no file is replaced, and the Result reports that',
    steps: [{ run: 'ulimit -n 3', gives: { state: 'lost' }, withinMs: 1_000 }, prints('echo ok', 'ok\n')],
  },
  {
    title: 'an exit with too few descriptors to save the state keeps its code and prints nothing',
    in: ['bash', 'dash'], // ash ends with the code of its own failure
    steps: [ends('echo a; ulimit -n 5; exit 4', { code: 4, out: 'a\n', state: 'lost' }), prints('echo ok', 'ok\n')],
  },
  {
    title: 'locals of a function that exits do not become global',
    in: ['bash'],
    steps: [
      prints('A=global; B=outer; f() { local A=1 IFS=, N=4; local -a L=(1); g; }; g() { local A=2 B; exit 1; }', ''),
      ends('f', { code: 1, state: 'kept' }),
      prints('echo "$A|$B|${N-unset}|${L-unset}"; printf "%s" "$IFS"', 'global|outer|unset|unset\n \t\n'),
    ],
  },
  {
    title: 'a read-only local hides the global variable, and the Result reports that',
    in: ['bash'],
    steps: [prints('A=global; f() { local -r A=1; exit 1; }', ''), ends('f', { state: 'partial' })],
  },
  {
    title: 'the state that dash and ash cannot express when they re-execute themselves is reported',
    in: ['dash', 'ash'],
    steps: [prints('f() { echo fn; }', ''), ends('exit 0', { state: 'partial' }), ends('f', { code: 127 })],
  },
  {
    title: 'functions, arrays, attributes and options survive exit',
    in: ['bash'],
    steps: [
      prints(
        'f() { echo "fn $1"; }; declare -A m=([a]="x y"); declare -ai n=(4); declare -r ro=1; set -o pipefail; shopt -s extglob nullglob; alias l=ll',
        '',
      ),
      ends('exit 2', { code: 2, state: 'kept' }),
      prints(
        'f 1; echo "${m[a]}|$ro"; n+=1; echo $n; shopt -q nullglob && [[ -o pipefail ]] && echo 1; alias l',
        "fn 1\nx y|1\n5\n1\nalias l='ll'\n",
      ),
    ],
  },
  {
    title: 'three hundred kilobytes in a variable survive exit',
    steps: [
      prints('x=0123456789; i=0; V=; while [ $i -lt 15 ]; do x=$x$x; i=$((i+1)); done; V=$x; echo ${#V}', '327680\n'),
      ends('exit 1', { state: 'resumed' }),
      prints('echo ${#V}', '327680\n'),
    ],
  },
  {
    title: 'ten thousand variables survive exit',
    steps: [
      prints('i=0; while [ $i -lt 10000 ]; do eval "v$i=$i"; i=$((i+1)); done', ''),
      ends('exit 1', { state: 'resumed' }),
      prints('echo $v0 $v9999', '0 9999\n'),
    ],
  },
];
