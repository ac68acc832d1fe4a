import { type HarmlessOptions, type ParsedOptions, parseOptions } from './parse-options.ts';

// Lists commands that write nothing and start nothing, which approval policies need not ask about. A command that is
// missing here is not safe. tests/rules-trial/safe-programs tries the real programs with arguments in every order.

type Check = (args: readonly string[]) => boolean;

/** Programs that write nothing and start nothing with any option, in the versions of GNU, busybox and toybox. */
const HARMLESS_WITH_ANY_OPTION =
  'cat cd cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tail tr true uname wc which whoami';

const withOptions =
  (harmless: HarmlessOptions, accepts: (parsed: ParsedOptions) => boolean): Check =>
  (args) =>
    parseOptions(args, harmless)?.every(accepts) ?? false;

const base64 = withOptions(
  { short: 'diw:', long: ['decode', 'ignore-garbage', 'wrap=', 'help', 'version'] },
  () => true,
);

/** `uniq` is safe only without a second operand, because it writes to that file. */
const uniq = withOptions(
  {
    short: 'cdDuizf:s:w:',
    long: ['count', 'repeated', 'all-repeated[=]', 'group[=]', 'unique', 'ignore-case', 'zero-terminated'].concat([
      'skip-fields=',
      'skip-chars=',
      'check-chars=',
      'help',
      'version',
    ]),
  },
  ({ operands }) => operands.length <= 1,
);

const PRINTS_LINES = /^[0-9]+(,[0-9]+)?p$/;
/** `sed` is safe only if its scripts print lines by number. Without `-e` the first operand is the script. */
const sed = withOptions(
  {
    short: 'nErsuze:l:',
    long: ['quiet', 'silent', 'regexp-extended', 'separate', 'unbuffered', 'null-data', 'zero-terminated'].concat([
      'expression=',
      'line-length=',
      'posix',
      'sandbox',
    ]),
  },
  ({ options, operands }) => {
    const given = options.filter(({ name }) => name === 'e' || name === 'expression').map(({ value }) => value);
    const scripts = given.length > 0 ? given : operands.slice(0, 1);
    return scripts.length > 0 && scripts.every((script) => PRINTS_LINES.test(script ?? ''));
  },
);

const FIND_WORDS = new Set(
  `-H -L -P -and -or -not -a -o -true -false -print -print0 -printf -ls -prune -quit -daystart -depth -d -follow -mount -xdev -noleaf
   -ignore_readdir_race -noignore_readdir_race -warn -nowarn -regextype -maxdepth -mindepth -name -iname -path -ipath -wholename -iwholename
   -regex -iregex -lname -ilname -type -xtype -size -empty -perm -user -group -uid -gid -nouser -nogroup -inum -links -samefile -fstype
   -newer -anewer -cnewer -mtime -atime -ctime -mmin -amin -cmin -used -readable -writable -executable -context`.split(
    /\s+/,
  ),
);
const FIND_NUMBER = /^-[0-9]+[bcwkMG]?$/;
const FIND_NEWER = /^-newer[aBcm][aBcmt]$/;
/**
 * `find` is safe only if every word with a dash is known, even in the place of a value: actions that write or start
 * something are such words.
 */
const find: Check = (args) =>
  args.every(
    (arg) =>
      !arg.startsWith('-') || FIND_WORDS.has(arg) || FIND_NUMBER.test(arg) || FIND_NEWER.test(arg) || arg === '-',
  );

/**
 * `rg` is safe without `--pre`, `--hostname-bin` and `-z`, which start programs. It takes options after operands, and
 * no abbreviations.
 */
const rg = withOptions(
  {
    short: 'abcFHhIiLlnNoPpqSsuUvwx0.A:B:C:E:e:f:g:j:M:m:r:T:t:',
    long: [
      'after-context= before-context= context= regexp= file= glob= iglob= type= type-not= max-count= max-depth= max-columns= max-filesize= replace= sort=',
      'sortr= threads= encoding= color= colors= path-separator= context-separator= engine= ignore-file=',
      'binary byte-offset case-sensitive column count count-matches crlf debug files files-with-matches files-without-match fixed-strings follow heading',
      'help hidden ignore-case include-zero invert-match json line-buffered line-number line-regexp max-columns-preview mmap multiline multiline-dotall',
      'no-config no-filename no-heading no-ignore no-ignore-dot no-ignore-global no-ignore-parent no-ignore-vcs no-line-number no-messages no-mmap',
      'null null-data one-file-system only-matching passthru pcre2 pretty quiet smart-case stats text trim type-list unrestricted version vimgrep',
      'with-filename word-regexp',
    ].flatMap((names) => names.split(' ')),
  },
  () => true,
);

const KNOWN_SAFE: ReadonlyMap<string, Check> = new Map<string, Check>([
  ...HARMLESS_WITH_ANY_OPTION.split(' ').map((name): [string, Check] => [name, () => true]),
  ...Object.entries({ base64, uniq, sed, find, rg }),
]);

/** Tells whether a command is safe. All of its words must be known. */
export function isKnownSafe([name = '', ...args]: readonly string[]): boolean {
  const check = KNOWN_SAFE.get(name.replace(/^\/(?:usr\/)?bin\//, ''));
  return check?.(args) ?? false;
}
