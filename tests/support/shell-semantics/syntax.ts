// Scripts that do not end where they should are refused at once; nothing that is right is.
import { type Case, ends, prints, type Step } from './case.ts';

const refused = (run: string): Step => ({ run, gives: { code: 2, out: '', err: /./, state: 'kept' }, withinMs: 1_500 });
const opened = (run: string): Step => ({
  ...refused(run),
  gives: { code: 2, out: '', state: 'kept', err: 'syntax error: the script ends inside a here-document\n' },
});

export const syntax: Case[] = [
  {
    title: 'an open quote, bracket or keyword is a syntax error at once (S1-18)',
    steps: [
      'echo "abc',
      "echo 'a\nb",
      'echo `a',
      'if :; then',
      '(',
      'echo $(',
      'echo $((1',
      'echo ${x',
      'case x in',
      'f() {',
      ')',
      'fi',
      'for',
    ].map(refused),
  },
  {
    title: 'what is open inside a command substitution does no damage',
    steps: [1, 2, 3, 4].flatMap(() => [
      refused('echo $('),
      refused("echo 'a\nb"),
      refused('echo "$(" '),
      ends('exit 2', { code: 2, state: 'resumed' }),
    ]),
  },
  {
    title: 'an open here-document is a syntax error, and nothing has run (S1-18)',
    steps: [
      opened('echo ran; read x <<EOF\nhello'),
      opened("echo ran; read x <<'EOF'\nhello\nEOF2"),
      opened('echo ran; read x <<-EOF\n\thello\n EOF'),
      opened('read x <<A; read y <<B\n1\nA\n2'),
      opened('read x <<EOF\nhello\nEOF '),
      opened("read x <<')'\nhello"),
      refused('f() { read x <<EOF\nhello\n}\nf'),
      opened('read x <<EOF\nhello \\'),
    ],
  },
  {
    title: 'here-documents that end are none',
    steps: [
      prints('read x <<EOF\nhello\nEOF\necho $x', 'hello\n'),
      prints('read -r x <<\'EOF\'\n$x ( \' " ` $(\nEOF\necho "$x"', '$x ( \' " ` $(\n'),
      prints('read x <<-EOF\n\thello\n\tEOF\necho $x', 'hello\n'),
      prints('read x <<A; read y <<B\n1\nA\n2\nB\necho $x$y', '12\n'),
      prints("read x <<')'\nhello\n)\necho $x", 'hello\n'),
      prints('read x <<"E F"\nhello\nE F\necho $x', 'hello\n'),
      prints('f() { read x <<EOF\nhello\nEOF\necho $x\n}\nf', 'hello\n'),
      prints('read x <<EOF\r\nhello\r\nEOF\r\necho fine', /^fine\n$/),
      prints('y=$(read x <<EOF\n(\nEOF\necho $x); echo $y', '(\n'),
    ],
  },
  {
    title: 'a << that is none',
    steps: [
      prints('echo $((1<<2)) # <<EOF', '4\n'),
      prints('echo \'<<EOF\' "<<EOF" \\<\\<EOF', '<<EOF <<EOF <<EOF\n'),
      prints('x=4; x=$((x << 1)); echo $x', '8\n'),
      prints(': # it is (', ''),
      prints('echo ":(" \':((\'', ':( :((\n'),
      prints('case a in a) echo a ;; (b) echo b ;; esac; echo "("', 'a\n(\n'),
    ],
  },
  {
    title: 'a here-string, and a shift in (( ))',
    in: ['bash'],
    steps: [prints('read x <<<"a b"; echo $x; ((y=1<<3)); echo $y', 'a b\n8\n')],
  },
  {
    title: 'an alias for an opening word counts at its end too',
    steps: [
      prints('echo a \\', 'a\n'),
      prints('echo a; # c', 'a\n'),
      ends('', { code: 0, out: '' }),
      ends('\n\n', { code: 0 }),
      ends('#', { code: 0 }),
    ],
  },
  {
    title: 'a command of a megabyte',
    steps: [
      { run: `: ${'x'.repeat(1 << 20)}\necho big`, gives: { out: 'big\n' } },
      { run: `read x <<EOF\n${'y'.repeat(1 << 20)}\nEOF\necho \${#x}`, gives: { out: '1048576\n' } },
    ],
  },
];
