// stdin: the session sends none of its own data over it.
import { type Case, ends, prints, withPrograms } from './case.ts';

export const input: Case[] = [
  {
    title: 'read finds the end at once (S1-17)',
    steps: [ends('read x', { code: 1, out: '', state: 'kept' }), prints('echo next', 'next\n')],
  },
  {
    title: 'cat finds the end at once (S1-17)',
    in: withPrograms,
    steps: [ends('cat', { code: 0, out: '' }), prints('echo next', 'next\n')],
  },
  {
    title: 'read finds what was given, and the next command does not',
    steps: [
      prints('read x; read y; echo "$x|$y"', 'a b|c\n', { stdin: Buffer.from('a b\nc\n') }),
      ends('read x', { code: 1 }),
    ],
  },
  {
    title: 'every byte that was given arrives',
    in: withPrograms,
    steps: [prints('cat; read z', '\0\xff\nA\0\n', { stdin: Buffer.from([0, 255, 10, 65, 0, 10]) })].map((step) => ({
      ...step,
      gives: { out: '\0\xff\nA\0\n', code: 1 },
    })),
  },
  {
    title: '$(<file) and a group that reads',
    in: ['bash'],
    steps: [
      prints('echo hi > /tmp/in; echo "$(</tmp/in)"', 'hi\n'),
      prints('{ read a; cat; } < <(printf "1\\n2\\n"); echo $a', '2\n1\n'),
    ],
  },
];
