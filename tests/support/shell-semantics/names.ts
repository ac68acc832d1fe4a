// The user's names, options and variables, on which the session's loop must not depend.
import { type Case, ends, prints } from './case.ts';

const V = prints('V=1', '');
const works = [prints('echo "$V"', '1\n'), ends('exit 3', { code: 3, state: 'resumed' }), prints('echo "$V"', '1\n')];

// The builtin of bash removes a function named command only when the shell ends, and reports it then.
const worksWithoutCommand = [prints('echo "$V"', '1\n'), ends('exit 3', { code: 3 }), prints('echo "$V"', '1\n')];

export const names: Case[] = [
  {
    title: 'a function named command that does nothing is removed, and the Result reports that',
    steps: [V, ends('command() { return 0; }', { state: 'mended' }), ...worksWithoutCommand],
  },
  {
    title: 'a function named command leaves bash out of POSIX mode',
    in: ['bash'],
    steps: [
      ends('command() { return 0; }', { state: 'mended' }),
      prints('echo ${POSIXLY_CORRECT-unset}; set -o | grep posix', 'unset\nposix          \toff\n'),
    ],
  },
  {
    title: 'a function named command is removed in a traced shell, and later output arrives',
    steps: [
      V,
      ends('set -x', { code: 0 }),
      ends('command() { return 0; }', { state: 'partial' }),
      ends('n=1; echo "$n"', { out: '1\n', err: /echo.* '?1'?\n/, state: 'kept' }),
      ends('set +x', { code: 0 }),
      prints('echo "$n"', '1\n'),
      ...works,
    ],
  },
  {
    title: 'a function named command is removed in a shell with set -e',
    steps: [
      V,
      ends('set -e', { code: 0 }),
      ends('command() { return 0; }', { state: 'partial' }),
      prints('n=1; set +e; echo "$n"', '1\n'),
      prints('echo "$n"', '1\n'),
      ...works,
    ],
  },
  {
    title: 'a command that defines a function named command is stopped at its time limit',
    steps: [
      V,
      ends(
        'command() { return 0; }; while :; do :; done',
        { state: 'partial' },
        { timeoutMs: 200, killGraceMs: 1_000 },
      ),
      ...works,
    ],
  },
  {
    title: 'a function named command is removed if its own command exits',
    steps: [V, ends('command() { return 0; }; exit 5', { code: 5, state: 'partial' }), ...works],
  },
  {
    title: 'a function named command is removed even if it calls the builtin',
    in: ['bash'],
    steps: [V, ends('command() { builtin command "$@"; }', { state: 'mended' }), ...worksWithoutCommand],
  },
  {
    title: 'functions with the names of builtins are called in commands of the user',
    in: ['bash'],
    steps: [
      V,
      prints(
        'eval() { echo F; }; exec() { echo F; }; set() { echo F; }; unset() { echo F; }; export() { echo F; }; return() { echo F; }; trap() { echo F; }; builtin() { echo F; }; shopt() { echo F; }; declare() { echo F; }; test() { echo F; }; :() { echo F; }',
        '',
      ),
      prints('set; echo "$V"', 'F\n1\n'),
      prints('echo $E', 'e\n', { env: { E: 'e' } }),
      ends('command exit 4', { code: 4, state: 'kept' }),
      prints('echo "$V"', '1\n'),
    ],
  },
  {
    title: 'the function : of the classical fork bomb is not called between commands',
    in: ['bash'],
    steps: [V, prints(':() { echo BOMB; }', ''), prints('echo $E', 'e\n', { env: { E: 'e' }, cwd: '/' }), ...works],
  },
  {
    title: 'functions named printf, read, cd and test do not disturb the session',
    steps: [
      V,
      prints('printf() { echo F; }; read() { echo F; }; cd() { echo F; }; test() { echo F; }', ''),
      prints('pwd', '/proc\n', { cwd: '/proc' }),
      ...works,
    ],
  },
  {
    title: 'aliases with the names of builtins and keywords do not disturb the session',
    steps: [
      V,
      prints('alias unset="echo A" export="echo A" eval="echo A" exec="echo A" trap="echo A" case="echo A"', ''),
      prints('pwd; echo $E', '/proc\ne\n', { cwd: '/proc', env: { E: 'e' } }),
      prints('echo "${E-unset}"', 'unset\n'),
      ...works,
    ],
  },
  {
    title: 'an alias with the name of a bracket does not disturb the exit of the shell',
    steps: [
      ends("case ${BASH_VERSION-} in ?*) shopt -s expand_aliases ;; esac\nV=1; alias '{'=false last='echo last'", {
        code: 0,
      }),
      ends('exit 3', { code: 3, out: '', err: '', state: 'resumed' }),
      prints('echo "$V"; last', '1\nlast\n'),
    ],
  },
  {
    title: 'aliases survive exit, also one named alias and those of several lines',
    steps: [
      ends(
        'case ${BASH_VERSION-} in ?*) shopt -s expand_aliases ;; esac\nalias alias=false many="echo a\n  echo b" quotes="echo it\\\'s \\\'x\\\'\n\necho c" last="echo last"',
        { code: 0 },
      ),
      ends('exit 3', { code: 3, state: 'resumed' }),
      prints('many\nquotes\nlast', "a\nb\nit's 'x'\nc\nlast\n"),
    ],
  },
  {
    title: 'functions named set, trap, alias, shopt and declare lose nothing at exit',
    in: ['bash'],
    steps: [
      prints('set -o pipefail; set -- a b; trap "echo usr" USR1; shopt -s nullglob; alias l=ll', ''),
      prints(
        'f() { echo exported; }; declare -fx f; for n in set declare trap alias shopt; do eval "$n() { :; }"; done',
        '',
      ),
      ends('exit 3', { code: 3, state: 'kept' }),
      prints(
        'echo $#; kill -USR1 $$; [[ -o pipefail ]] && builtin shopt -q nullglob && builtin alias l; bash -c f; type -t trap',
        "2\nusr\nalias l='ll'\nexported\nfunction\n",
      ),
    ],
  },
  {
    title: 'builtins that were disabled are enabled again, and the Result reports that',
    in: ['bash'],
    steps: [
      V,
      prints('enable -n read', ''),
      { run: 'echo "$V"', gives: { out: '1\n', state: 'mended' }, withinMs: 1_000 },
      prints('enable -n read', ''),
      ends('pwd; echo "$V"', { out: '/proc\n1\n', state: 'partial' }, { cwd: '/proc' }), // by the loop in any case
      ...works,
    ],
  },
  {
    title: 'the builtins command and printf are enabled again after they were disabled',
    in: ['bash'],
    steps: [
      V,
      { run: 'enable -n command printf; PATH=/none', gives: { state: 'mended' }, withinMs: 1_000 },
      { run: 'echo "$V"', gives: { out: '1\n' }, withinMs: 1_000 },
      ...works,
    ],
  },
  {
    title: 'a command that disables the builtins command and printf runs once',
    in: ['bash'],
    steps: [
      prints('V=0', ''),
      { run: 'V=$((V+1)); enable -n command printf; PATH=/none; (exit 3)', gives: { code: 3, state: 'mended' } },
      { run: 'echo "$V"', gives: { out: '1\n' } },
      ...works,
    ],
  },
  {
    title: 'IFS of the user stays, also after exit',
    steps: [
      prints('V=1; IFS=:', ''),
      ends('exit 1', {}),
      prints('X=a:b; for i in $X; do echo $i; done; printf "[%s]" "$IFS"', 'a\nb\n[:]'),
      ...works,
    ],
  },
  {
    title: 'an IFS of letters, digits and signs does not disturb the session',
    steps: [V, prints('IFS="0123456789abcdef-. "', ''), ...works],
  },
  {
    title: 'a read-only IFS does not disturb the session',
    steps: [V, prints('readonly IFS', ''), prints('pwd', '/proc\n', { cwd: '/proc' }), ...works],
  },
  {
    title: 'an empty PATH and prompts that print do not disturb the session',
    steps: [V, prints('PATH=""; PS1=x; PS2=y; PS4=z; PROMPT_COMMAND="echo BAD"; HOME=', ''), ...works],
  },
  {
    title: 'noclobber, noglob and allexport do not disturb the session',
    steps: [
      V,
      prints('set -C; set -f; set -a', ''),
      prints('echo *; pwd', '*\n/proc\n', { cwd: '/proc', env: { E: '1' } }),
      ...works,
    ],
  },
  {
    title: 'errexit, nounset and pipefail do not disturb the session',
    in: ['bash'],
    steps: [
      V,
      prints('set -euo pipefail', ''),
      ends('false | true; echo no', { code: 1, out: '' }),
      prints('pwd; echo $E', '/proc\n2\n', { cwd: '/proc', env: { E: '2' } }),
      ends('true', { code: 0 }),
      prints('set +e; echo "$V"', '1\n'),
    ],
  },
  {
    title: 'errexit does not turn a missing directory into an exit',
    steps: [
      V,
      prints('set -e', ''),
      ends('pwd', { code: null, out: '', state: 'kept' }, { cwd: '/no/such' }),
      prints('echo "$V"', '1\n'),
    ],
  },
  {
    // bash repeats the first character of PS4 for each nested file. Here the session's loop reads the script.
    title: 'a traced shell shows only lines of the user (set -x, PS4)',
    steps: [
      V,
      ends('PS4="> "; set -x', { err: '' }),
      ends('echo t', { out: 't\n', err: /^(>|>>>) echo t\n$/ }),
      ends('exit 0', { err: /^(>|>>>) exit 0\n$/ }),
      ends('echo u', { out: 'u\n', err: /^(>|>>>) echo u\n$/ }),
      ends('set +x', { err: /^(>|>>>) set \+x\n$/ }),
      ends('echo "$V"', { out: '1\n', err: '' }),
    ],
  },
  {
    title: 'DEBUG, ERR and RETURN traps stay across exit, also out of a function',
    in: ['bash'],
    steps: [
      prints("trap 'D=1' DEBUG; trap 'E=2' ERR; trap 'R=3' RETURN", ''),
      ends('D=; E=; R=; f() { exit 3; }; false', {}),
      prints('echo "$D$E$R"', '123\n'),
      ends('f', { code: 3, state: 'kept' }),
      ends('D=; E=; R=; false', {}),
      prints('echo "$D$E$R"', '123\n'),
    ],
  },
  {
    title: 'a shell whose DEBUG trap prevents every command is replaced immediately',
    in: ['bash'],
    steps: [
      { run: 'shopt -s extdebug; trap false DEBUG', gives: { state: 'lost' }, withinMs: 1_000 },
      prints('echo ok', 'ok\n'),
    ],
  },
  {
    title: 'a DEBUG trap that exits does not block later commands',
    in: ['bash'],
    steps: [
      V,
      ends("trap 'exit 9' DEBUG", {}),
      { run: 'echo ok', gives: {}, withinMs: 1_000 },
      { run: 'trap - DEBUG; echo ok', gives: {}, withinMs: 1_000 },
    ],
  },
  {
    title: 'job control does not prevent the stop of a command',
    in: ['bash', 'ash'],
    steps: [
      V,
      ends('set -m', { code: 0 }),
      ends('sleep 60', { state: 'resumed' }, { timeoutMs: 200, killGraceMs: 600 }),
      prints('echo "$V"', '1\n'),
    ],
  },
  {
    title: 'stty without a terminal fails without an effect on the shell',
    in: ['bash'],
    steps: [V, ends('stty raw', { code: 1, state: 'kept' }), ...works],
  },
  {
    title: 'closed and redirected descriptors do not disturb the session',
    steps: [
      V,
      prints('exec 0<&- 1>&- 2>&- 3>&- 8>&- 9>&-', ''),
      prints('exec 5>/dev/null 8>/dev/null 9>/dev/null', ''),
      prints('exec >/dev/null 2>&1; echo hidden', ''),
      ...works,
      prints('echo gone >&5; echo seen', 'seen\n'),
    ],
  },
  {
    title: 'a shell whose directory was removed runs commands, and exit reports lost state',
    in: ['bash', 'ash'],
    steps: [
      V,
      prints('mkdir -p /tmp/gone; cd /tmp/gone; rmdir /tmp/gone', ''),
      prints('echo "$V"', '1\n'),
      ends('exit 3', { code: 3, state: 'resumed' }),
      ends('pwd', { out: '/proc\n', state: 'partial' }, { cwd: '/proc' }),
      prints('cd /; echo "$V"', '1\n'),
    ],
  },
];
