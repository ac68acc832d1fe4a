// The pieces of which scripts of the trial consist, besides the commands. Pieces are separated by line ends or by two
// blanks.

type List<T> = readonly [T, ...T[]];

/** Splits lines of source into pieces, which two blanks separate. No piece contains two blanks. */
function list(...lines: string[]): List<string> {
  const [first = '', ...rest] = lines.flatMap((line) => line.split('  '));
  return [first, ...rest];
}

export const ARGUMENTS = list(
  String.raw`-s  --  -rf  status  evil  a b  #  #x  x#y  ;  &&  ||  |  &  \  \\  "  '  $  $(evil)  $x  $evil  $IFS  $@  $0  $?`,
  '*  ?  [a-z]*  {evil,x}  {a..c}  ~  ~root  x=y  PATH=.  !  !!  %1  (  )  {  }  <  >  >x  2>&1  <(evil)  =(evil)  @(a|b)',
  '`  `evil`  ${x}  -exec  -delete  ^x^y  a[$(evil)]  +x  @  é  日本  \u{1f600}',
  ...['', ' ', '\n', '\t', '\r', '\v', '\f', '\x01', '\x7f', '\u0085', '\u00a0', '\u2028', '\u3000', '\ufeff'],
  ...['a\nb', '\\\nx', "$'\\n'"],
);

export const SEPARATORS = list(
  ';  &&  ||  |  &  |&  ;;  ; !',
  ...[
    '\n',
    ' && ',
    ' || ',
    ' | ',
    ' ;',
    ';\n',
    '\n\n',
    ' & ',
    ' |& ',
    ' ;; ',
    '\t',
    ' ',
    '\n\t',
    '&&\n',
    '|\n',
    '\n! ',
  ],
  ...[' # note\n', ' #\n', '#x\n', " # it's \\\n", ';# " \n', '||\n# x\n'],
  ...['\r\n', '\r', ' \\\n', '\\\n', '\\\n;', ';\\\n', '&\\\n&', '|\\\n|', '\f', '\v', '\u00a0;', ';\u00a0'],
);

export const BLANKS: List<string> = [
  ...([
    ' ',
    ' ',
    ' ',
    ' ',
    '  ',
    '\t',
    ' \\\n',
    '\\\n ',
    ' \\\n\\\n\t',
    '\u00a0',
    '\v',
    '\f',
    '\r',
    ' \\ ',
    '',
  ] as const),
];

export const PIECES: List<string> = [
  ...ARGUMENTS,
  ...SEPARATORS,
  ...list(
    'git  status  git status  evil  wipe  eval  eval evil  if  fi  do  done  while  esac  in  --  $(  $((  ))  ${  ${x:-  ${x:=',
    '${!x}  ${x@P}  $[  ]  $"  <<EOF  <<-EOF  <<<  <&  >|  &>  >&  <>  2>  3<  x=evil;  IFS=;  unset x;  cd /trial/programs;',
    'true;  false;  cd .;  :;  ((  "$(evil)"  "${x}"  "$x"  "$  ""  "git"  "!"  "`evil`"  "`',
    String.raw`<<\EOF  \g  g\it  \"  \'  \$  \#  \;  \!  "\""  "\  '\'  '\''`,
  ),
  ...[
    'exec ',
    'command ',
    'builtin ',
    'time ',
    'time -p ',
    '! ',
    'coproc ',
    'then ',
    'for x in ',
    'case x in ',
    'function ',
    'select ',
  ],
  ...[
    "<<'EOF'",
    '\nEOF\n',
    '\nEOF',
    'x=1 ',
    "IFS='x' ",
    'PATH=. ',
    'x+=y ',
    'x[0]=1 ',
    '[[ ',
    ' ]]',
    '[ ',
    '{ ',
    '; }',
    ': ',
  ],
  ...[
    'alias git=evil\n',
    'git() { evil; }\n',
    'function git { evil; }\n',
    'set -- evil\n',
    'shopt -s expand_aliases\n',
  ],
  ...['hash -p /trial/programs/evil git\n', 'trap evil EXIT\n', '. ./evil\n', 'true && ', 'false || ', '\\ ', '\\`'],
  ...["''", "'g'it", "$'git'", "$'\\x67it'", "$'", '\\\n', '\\\r\n', '\\\\\n', "'\"'", '"\'"', '"$\'x\'"', '"a\\\nb"'],
];

/** Text before and after a command. */
export const WRAPPERS: List<readonly [before: string, after: string]> = [
  ['( ', ' )'],
  ['{ ', '; }'],
  ['if true; then ', '; fi'],
  ['f() { ', '; }; f'],
  ['for x in 1; do ', '; done'],
  ['case x in x) ', ' ;; esac'],
  ['$( ', ' )'],
  ['` ', ' `'],
  ['echo "$( ', ' )"'],
  ["eval '", "'"],
  ['echo <(', ')'],
  ['cat >(', ')'],
  ...['time ', '! ', 'coproc ', 'x=1 ', '# ', '#\\\n', '\ufeff', '\r', 'env ', 'command ', 'exec '].map(
    (before) => [before, ''] as const,
  ),
  ...[' > out', ' 2>&1', ' < file', ' &', ' \\', ' # \\\nevil'].map((after) => ['', after] as const),
  ["cat <<'EOF' | ", '\nx\nEOF'],
  ...[
    " <<'EOF'\n$(evil)\nEOF\n",
    ' << "EOF"\n`evil`\nEOF\n\n',
    " <<'EOF'\nx\nEOF\nevil\n",
    " <<'EOF'\nx\nEOF\r\nevil\nEOF\n",
    " <<'EOF' evil\nx\nEOF\n",
    ' <<EOF\n$(evil)\nEOF\n',
    ' <<\\EOF\nx\nEOF \nevil\nEOF',
  ].map((after) => ['', after] as const),
];
