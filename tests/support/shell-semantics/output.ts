// stdout and stderr: exact, separate, and never mixed with another command's output.
import { type Case, ends, prints, withPrograms } from './case.ts';

const allBytes = Buffer.from([...Array(256).keys()]).toString('latin1');
const lines = (letter: string) => Array.from({ length: 2000 }, (_, i) => `${letter}${i}\n`).join('');

export const output: Case[] = [
  {
    title: 'no newline at the end (S1-16)',
    steps: [ends('printf abc; printf def >&2', { out: 'abc', err: 'def', code: 0 })],
  },
  { title: 'carriage returns', steps: [prints('echo a\r\necho b\r\n', 'a\r\nb\r\n')] },
  {
    title: 'all 256 bytes',
    steps: [prints('i=0; while [ $i -lt 256 ]; do printf "\\\\$(printf %o $i)"; i=$((i+1)); done', allBytes)],
  },
  { title: "$'…' and NUL", in: ['bash'], steps: [prints("printf %s $'a\\tb\\x00c'", 'a\tb')] },
  {
    title: 'text that looks like a report of the loop',
    steps: [prints("printf '\\n00000000 0 same\\n'; printf '\\0\\001E 0\\n'", '\n00000000 0 same\n\0\x01E 0\n')],
  },
  {
    title: 'two thousand lines on each stream',
    steps: [
      ends('i=0; while [ $i -lt 2000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done', {
        out: lines('o'),
        err: lines('e'),
      }),
    ],
  },
  {
    title: 'a line of a megabyte',
    steps: [
      prints(
        'x=0123456789abcdef; i=0; while [ $i -lt 16 ]; do x=$x$x; i=$((i+1)); done; echo ${#x}; printf %s "$x"',
        /^1048576\n(0123456789abcdef){65536}$/,
      ),
    ],
  },
  {
    title: '/dev/stdout and /dev/stderr by name',
    steps: [
      ends('echo 1 >&2; echo 2 > /dev/stderr; echo x > /dev/stdout; echo 3 >&2', { out: 'x\n', err: '1\n2\n3\n' }),
    ],
  },
  {
    title: 'exec >file holds for its command, exec 5>file for the session',
    steps: [
      prints('exec >/tmp/ef; echo tofile', ''),
      prints('read x </tmp/ef; echo "seen $x"', 'seen tofile\n'),
      prints('exec 5>/tmp/f5', ''),
      prints('echo q >&5; read x </tmp/f5; echo $x', 'q\n'),
    ],
  },
  {
    title: 'a background process holds nothing up, and wait finds it later',
    in: withPrograms,
    steps: [
      { run: 'sleep 1 & echo x', gives: { out: 'x\n' }, withinMs: 800 },
      prints('wait $!; echo "done $?"', 'done 0\n'),
    ],
  },
  {
    title: 'a background process survives a later deadline',
    in: withPrograms,
    steps: [
      prints('sleep 60 >/dev/null 2>&1 & P=$!', ''),
      ends('sleep 61', {}, { timeoutMs: 200, killGraceMs: 600 }),
      prints('kill -0 $P && echo alive; kill $P', 'alive\n'),
    ],
  },
  {
    title: 'programs get SIGPIPE as they expect it',
    in: withPrograms,
    steps: [prints('yes | head -n 1', 'y\n'), prints("(trap '' PIPE; :); yes | head -n 1", 'y\n')],
  },
];
