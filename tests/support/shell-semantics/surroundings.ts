// env and cwd of one command apply to that command only, and leave no trace.
import { type Case, ends, prints } from './case.ts';

export const surroundings: Case[] = [
  {
    title: 'a new, a plain and an exported variable return to their former state',
    steps: [
      prints('cd /dev; P=plain; export E=exported', ''),
      prints('pwd; printf "%s|" "$N" "$P" "$E"', '/proc\nn|it\'s $x `y` "z"\nline|other|', {
        cwd: '/proc',
        env: { N: 'n', P: 'it\'s $x `y` "z"\nline', E: 'other' },
      }),
      prints('pwd; printf "%s|" "${N-unset}" "$P" "$E"', '/dev\nunset|plain|exported|'),
    ],
  },
  {
    title: 'a variable that was not exported is not exported afterwards',
    in: ['bash', 'ash'],
    steps: [
      prints('P=plain', ''),
      prints('env | grep ^P=', 'P=x\n', { env: { P: 'x' } }),
      ends('env | grep ^P=', { code: 1, out: '' }),
    ],
  },
  {
    title: 'variables and directory return when the command exits, fails or times out',
    steps: [
      prints('cd /dev; P=plain', ''),
      ends('cd /sys; exit 5', { code: 5 }, { cwd: '/proc', env: { P: 'x' } }),
      prints('pwd; echo $P', '/dev\nplain\n'),
      ends('while :; do :; done', {}, { cwd: '/proc', env: { P: 'x' }, timeoutMs: 100 }),
      prints('pwd; echo $P', '/dev\nplain\n'),
      ends('set -e; (exit 2)', { code: 2 }, { cwd: '/proc', env: { P: 'x' } }),
      prints('pwd; echo $P', '/dev\nplain\n'),
    ],
  },
  {
    title: 'changes of the variable by the command itself are undone, too',
    steps: [
      prints('P=x; unset Q; cd /sys', '', { cwd: '/proc', env: { P: '1', Q: '2' } }),
      prints('echo "${P-unset}|${Q-unset}"', 'unset|unset\n'),
    ],
  },
  {
    title: 'an empty variable is empty again, and not unset',
    steps: [prints('P=', ''), prints('echo "$P"', 'x\n', { env: { P: 'x' } }), prints('echo "[${P-unset}]"', '[]\n')],
  },
  {
    title: 'a command with a value for a read-only variable does not run, for a reason on stderr',
    steps: [
      prints('readonly R=1; P=p', ''),
      ends('echo ran', { code: 1, out: '', err: 'R: readonly variable\n', state: 'kept' }, { env: { P: 'x', R: '2' } }),
      prints('echo $R $P', '1 p\n'),
    ],
  },
  {
    title: 'a variable that the command makes read-only stays, and the Result reports that',
    steps: [ends('readonly P', { out: '', err: '', state: 'partial' }, { env: { P: 'x' } }), prints('echo $P', 'x\n')],
  },
  {
    title: 'a variable that stays read-only does not end a shell with set -e',
    steps: [
      prints('V=1; P=old; set -e', ''),
      ends('readonly P', { state: 'partial' }, { env: { P: 'x' } }),
      prints('echo $V $P', '1 x\n'),
    ],
  },
  {
    title: 'arrays, integers and attributes are restored completely',
    in: ['bash'],
    steps: [
      prints('declare -a A=(1 "2 3"); declare -A M=([a]="x y"); declare -i I=3; declare -u U=up; declare -x X=1', ''),
      prints('echo "$A|$M|$I|$U|$X"; env | grep -cE "^[AMIUX]="', 'x|m|7|low|2\n5\n', {
        env: { A: 'x', M: 'm', I: '7', U: 'low', X: '2' },
      }),
      prints(
        'declare -p A M I U X',
        'declare -a A=([0]="1" [1]="2 3")\ndeclare -A M=([a]="x y" )\ndeclare -i I="3"\ndeclare -u U="UP"\ndeclare -x X="1"\n',
      ),
    ],
  },
  {
    title: 'a global variable returns after a function with an equal local exits',
    in: ['bash'],
    steps: [
      prints('P=global; f() { local P=l; exit 1; }', ''),
      ends('f', { code: 1, state: 'kept' }, { env: { P: 'x' } }),
      prints('echo $P', 'global\n'),
    ],
  },
  {
    title: 'IFS and PATH of one command do not apply to the next',
    steps: [
      prints('X=a:b; for i in $X; do echo $i; done', 'a\nb\n', { env: { IFS: ':' } }),
      prints('for i in $X; do echo $i; done; printf "[%s]" "$IFS"', 'a:b\n[ \t\n]'),
      prints('echo "$PATH"', '/none\n', { env: { PATH: '/none' } }),
      prints('case $PATH in /none) echo stuck ;; esac', ''),
    ],
  },
  {
    title: "cd - leads to the directory before the command's own",
    steps: [
      prints('cd /dev; cd /sys', ''),
      prints('pwd', '/proc\n', { cwd: '/proc' }),
      prints('cd -; pwd', '/dev\n/dev\n'),
    ],
  },
  {
    title: 'a command with a missing directory does not run',
    steps: [
      prints('cd /dev; P=p', ''),
      ends('echo ran', { code: null, out: '', state: 'kept' }, { cwd: '/no/such', env: { P: 'x' } }),
      prints('pwd; echo $P', '/dev\np\n'),
    ],
  },
];
