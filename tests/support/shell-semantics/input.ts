// The stdin of commands. The session itself sends nothing over a command's stdin.
import { type Case, ends, prints, withPrograms } from './case.ts';

export const input: Case[] = [
  {
    // S1-17
    title: 'read finds the end of stdin immediately',
    steps: [ends('read x', { code: 1, out: '', state: 'kept' }), prints('echo next', 'next\n')],
  },
  {
    // S1-17
    title: 'cat finds the end of stdin immediately',
    in: withPrograms,
    steps: [ends('cat', { code: 0, out: '' }), prints('echo next', 'next\n')],
  },
  {
    title: 'read finds the stdin of its command, and the next command finds none',
    steps: [
      prints('read x; read y; echo "$x|$y"', 'a b|c\n', { stdin: Buffer.from('a b\nc\n') }),
      ends('read x', { code: 1 }),
    ],
  },
  {
    title: 'every byte of stdin arrives',
    in: withPrograms,
    steps: [prints('cat; read z', '\0\xff\nA\0\n', { stdin: Buffer.from([0, 255, 10, 65, 0, 10]) })].map((step) => ({
      ...step,
      gives: { out: '\0\xff\nA\0\n', code: 1 },
    })),
  },
  {
    title: '$(<file) and a group with its own stdin read from there',
    in: ['bash'],
    steps: [
      prints('echo hi > /tmp/in; echo "$(</tmp/in)"', 'hi\n'),
      prints('{ read a; cat; } < <(printf "1\\n2\\n"); echo $a', '2\n1\n'),
    ],
  },
];
