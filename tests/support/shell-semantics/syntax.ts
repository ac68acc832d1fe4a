// A script that ends inside an open construct is refused before it runs. A script that the session's shell accepts is
// not refused.
import { type Case, ends, prints, type Step } from './case.ts';

const refused = (run: string): Step => ({ run, gives: { code: 2, out: '', err: /./, state: 'kept' }, withinMs: 1_500 });
const opened = (run: string): Step => ({
  ...refused(run),
  gives: { code: 2, out: '', state: 'kept', err: 'syntax error: the script ends inside a here-document\n' },
});

export const syntax: Case[] = [
  {
    // S1-18
    title: 'an open quote, bracket or keyword is a syntax error immediately',
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
    title: 'an open construct inside a command substitution has no effect on later commands',
    steps: [1, 2, 3, 4].flatMap(() => [
      refused('echo $('),
      refused("echo 'a\nb"),
      refused('echo "$(" '),
      ends('exit 2', { code: 2, state: 'resumed' }),
    ]),
  },
  {
    // S1-18
    title: 'an open here-document is a syntax error, and nothing has run',
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
    title: 'complete here-documents are accepted',
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
    title: 'a << that begins no here-document is accepted',
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
    title: 'a here-string and a shift in (( )) are accepted',
    in: ['bash'],
    steps: [prints('read x <<<"a b"; echo $x; ((y=1<<3)); echo $y', 'a b\n8\n')],
  },
  {
    title: 'a script that ends in a backslash, in a comment or in nothing is accepted',
    steps: [
      prints('echo a \\', 'a\n'),
      prints('echo a; # c', 'a\n'),
      ends('', { code: 0, out: '' }),
      ends('\n\n', { code: 0 }),
      ends('#', { code: 0 }),
    ],
  },
  {
    title: 'an open here-document is found after other lines, aliases and exits',
    steps: [
      opened('echo ran\nread x <<EOF\nhello'),
      opened('if true; then echo ran; fi\n{ read x; } <<EOF\nhello'),
      opened('alias k=echo\nk ran\nread x <<EOF\nhello'),
      opened('echo ran; read x <<EOF\nexit 0\nhello'),
      opened('echo ran; if false; then\nexit 1\nfi\nread x <<EOF\nhello'),
    ],
  },
  {
    title: 'an open here-document is found while extglob is on',
    in: ['bash'],
    steps: [
      opened('echo ran; x=$(cat <<EOF\nhello\n)'),
      opened('echo ran; f() { cat <<EOF\nhello\n}\nf'),
      opened('shopt -s extglob\necho !(a) ran\nread x <<EOF\nhello'),
      opened('f() { shopt -s extglob; }; f\necho @(a|b) ran\nread x <<EOF\nhello'),
      ends('shopt -s extglob', { code: 0 }),
      opened('echo !(a) ran; read x <<EOF\nhello'),
      prints('cat <<EOF; [[ b == !(a) ]] && echo yes\nhello\nEOF', 'hello\nyes\n'),
      ends('shopt -u extglob', { code: 0 }),
    ],
  },
  {
    title: 'a script that enables extglob and uses it on a later line runs',
    in: ['bash'],
    steps: [
      prints('shopt -s extglob\n[[ b == !(a) ]] && echo "("', '(\n'),
      prints('[[ b == !(a) ]] && echo "("', '(\n'),
      prints('shopt -u extglob; f() { shopt -s extglob; }; f\n[[ b == !(a) ]] && echo "("', '(\n'),
      prints('shopt -u extglob; if true; then shopt -s extglob; fi\ncase b in !(a)) echo "(" ;; esac', '(\n'),
      prints('shopt -u extglob; shopt -s extglob\n[[ b == @(b|c) ]] && cat <<EOF\n(\nEOF', '(\n'),
      ends('shopt -u extglob', { code: 0 }),
    ],
  },
  {
    title: 'a script that needs an alias of an earlier command runs',
    steps: [
      ends("case ${BASH_VERSION-} in ?*) shopt -s expand_aliases ;; esac\nalias fin=fi begin='{' finish='}'", {
        code: 0,
      }),
      prints('if true; then echo "("\nfin', '(\n'),
      prints('begin read x <<EOF\n(\nEOF\necho "$x"; finish', '(\n'),
      refused('begin echo ran; read x <<EOF\nhello\nfinish\n'),
    ],
  },
  {
    title: 'a script that makes an alias, and needs it on a later line, runs',
    steps: [
      prints(
        'case ${BASH_VERSION-} in ?*) shopt -s expand_aliases ;; esac\nalias fin=fi\nif true; then echo "("\nfin\nread x <<EOF\na\nEOF\necho $x',
        '(\na\n',
      ),
    ],
  },
  {
    title: 'a here-document whose delimiter is the last bytes of the script is complete (daytona#4230)',
    steps: [
      prints('read x <<EOF\nhello\nEOF', ''),
      prints('echo "$x"', 'hello\n'),
      prints("read x <<'EOF'\nhel$lo\nEOF", ''),
      prints('echo "$x"', 'hel$lo\n'),
      prints('read x <<-EOF\n\ttabs\n\tEOF', ''),
      prints('echo "$x"', 'tabs\n'),
      prints('read x <<A; read y <<B\n1\nA\n2\nB', ''),
      prints('echo "$x$y"', '12\n'),
    ],
  },
  {
    title: 'a script that exits before other text runs up to its exit',
    steps: [
      ends('echo a\nexit 3\nan archive: ((( <<EOF "', { code: 3, out: 'a\n' }),
      ends('read x <<EOF\n(\nEOF\necho "$x"\nexit\n$( <<EOF', { code: 0, out: '(\n' }),
    ],
  },
  {
    title: 'the check of the script runs nothing, and keeps $? and the arguments',
    steps: [
      ends('set -- a b; (exit 7)', { code: 7 }),
      prints('echo $? $# <<EOF\nEOF', '7 2\n'),
      ends('false', { code: 1 }),
      ends('echo ran >/tmp/ran <<EOF', { code: 2, out: '' }),
      prints('echo $?; [ -e /tmp/ran ] || echo none', '2\nnone\n'),
    ],
  },
  {
    title: 'the check does not depend on names and options of the user',
    steps: [
      ends('set -uC; OLD=$IFS; IFS=abcdefghijklmnopqrstuvwxyz; read() { :; }; test() { :; }', { code: 0 }),
      opened('echo ran; cat <<EOF\nhello'),
      prints('printf "%s\\n" "$#" <<EOF\nEOF', '0\n'),
      ends('set +uC; IFS=$OLD; unset -f read test', { code: 0 }),
      opened('echo ran; cat <<EOF\nhello'),
    ],
  },
  {
    title: 'a command of a megabyte runs',
    steps: [
      { run: `: ${'x'.repeat(1 << 20)}\necho big`, gives: { out: 'big\n' } },
      { run: `read x <<EOF\n${'y'.repeat(1 << 20)}\nEOF\necho \${#x}`, gives: { out: '1048576\n' } },
    ],
  },
];
