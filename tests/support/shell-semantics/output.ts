// stdout and stderr: exact, separate, and never mixed with another command's output.
import { type Case, ends, prints, withPrograms } from './case.ts';

const allBytes = Buffer.from([...Array(256).keys()]).toString('latin1');
const lines = (letter: string) => Array.from({ length: 2000 }, (_, i) => `${letter}${i}\n`).join('');

export const output: Case[] = [
  {
    // S1-16
    title: 'output without a newline at the end arrives',
    steps: [ends('printf abc; printf def >&2', { out: 'abc', err: 'def', code: 0 })],
  },
  { title: 'carriage returns arrive', steps: [prints('echo a\r\necho b\r\n', 'a\r\nb\r\n')] },
  {
    title: 'all 256 bytes arrive',
    steps: [prints('i=0; while [ $i -lt 256 ]; do printf "\\\\$(printf %o $i)"; i=$((i+1)); done', allBytes)],
  },
  { title: "a string $'…' ends at its NUL", in: ['bash'], steps: [prints("printf %s $'a\\tb\\x00c'", 'a\tb')] },
  {
    title: 'text that looks like a report of the session itself arrives',
    steps: [prints("printf '\\n00000000 0 same\\n'; printf '\\0\\001E 0\\n'", '\n00000000 0 same\n\0\x01E 0\n')],
  },
  {
    title: 'two thousand lines on each stream arrive',
    steps: [
      ends('i=0; while [ $i -lt 2000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done', {
        out: lines('o'),
        err: lines('e'),
      }),
    ],
  },
  {
    title: 'a line of a megabyte arrives',
    steps: [
      prints(
        'x=0123456789abcdef; i=0; while [ $i -lt 16 ]; do x=$x$x; i=$((i+1)); done; echo ${#x}; printf %s "$x"',
        /^1048576\n(0123456789abcdef){65536}$/,
      ),
    ],
  },
  {
    title: 'output to /dev/stdout and /dev/stderr by name arrives',
    steps: [
      ends('echo 1 >&2; echo 2 > /dev/stderr; echo x > /dev/stdout; echo 3 >&2', { out: 'x\n', err: '1\n2\n3\n' }),
    ],
  },
  {
    title: 'exec >file applies to its command, and exec 5>file to the session',
    steps: [
      prints('exec >/tmp/ef; echo tofile', ''),
      prints('read x </tmp/ef; echo "seen $x"', 'seen tofile\n'),
      prints('exec 5>/tmp/f5', ''),
      prints('echo q >&5; read x </tmp/f5; echo $x', 'q\n'),
    ],
  },
  {
    title: 'a background process delays nothing, and wait finds it later',
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
    title: 'a program that writes to a closed pipe is ended by SIGPIPE',
    in: withPrograms,
    steps: [prints('yes | head -n 1', 'y\n'), prints("(trap '' PIPE; :); yes | head -n 1", 'y\n')],
  },
];
