import type { Random } from '../../support/random.ts';

type List = readonly [string, ...string[]];

/** Programs that the lists of @shellfleet/policy have, that they had, and that somebody might add. */
export const PROGRAMS: List = [
  'sed',
  ...`find uniq base64 cat cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tac tail tr true uname wc which whoami cd rg
  basename chgrp chmod chown cksum cmp comm cp csplit df dircolors dirname du expand factor fmt fold groups join link ln logname md5sum mkdir
  mkfifo mktemp mv nproc od pathchk pr printenv ptx readlink realpath rmdir sha1sum sha224sum sha256sum sha384sum sha512sum shuf sleep sum
  sync tee touch tsort tty unexpand unlink base32 b2sum yes sort split tar gzip xz diff patch install env xargs awk nice nohup timeout stdbuf date
  file strings column hexdump cpio ed vi less more man dd truncate shred rm test printf kill ps top free uptime watch time flock script xxd
  getopt logger rename hostname hostid users who pinky runcon chroot setsid ionice prlimit choom setarch taskset chrt unshare nsenter logsave
  git node python3 sh bash busybox dash perl openssl tree jq curl wget make`.split(/\s+/),
];

/** Options of every program, as its own help shows them. */
export type HelpOptions = ReadonlyMap<string, { long: string[]; short: string[] }>;

export function parseHelp(name: string, help: string): { long: string[]; short: string[] } {
  const long = [...new Set(help.match(/(?<![\w-])--[a-z][a-z0-9-]*/g) ?? [])];
  const short = [
    ...new Set([...help.matchAll(/(?<![\w-])-([A-Za-z0-9])(?![\w-])/g)].map(([, letter]) => letter as string)),
  ];
  // Expressions of find are options of one dash.
  const words = name === 'find' ? (help.match(/(?<![\w-])-[a-z][a-z0-9]{2,}/g) ?? []) : [];
  return { long: [...long, ...words], short };
}

/**
 * Names of files in the directory of the trial, and texts that programs may take for a script, a number, a mode or a
 * command.
 */
const VALUES: List = [
  'a',
  ...['b', 'f', '1p', '1,2p', '-', 'dir', 'dir/a', 'missing', './-x', 'made', '.', '/dev/null', '/dev/stdin'],
  ...[
    '1',
    '0',
    '5',
    '2,3',
    '+1',
    '10k',
    '-1',
    'u+x',
    '755',
    'name',
    'none',
    'all',
    'a=b',
    'x',
    '%f',
    '{}',
    ';',
    '+',
    '!',
    '(',
  ],
  ...[
    '1e touch made',
    'w made',
    '1w made',
    's/a/b/w made',
    's/a/touch made/e',
    '$p',
    '1!p',
    '1p;w made',
    '1p\nw made',
    'touch made',
  ],
  ...['/bin/touch', 'touch', 'sh', '-exec', '-delete', '-fprint', '-ok', '-execdir', '-fls', '-name', '-o', '-print'],
];
const STARTS: readonly string[][] = [['-n', '1p'], ['-n', '1,2p'], ['-n', '-e', '1p'], ['.'], ['-c'], ['a'], []];

/**
 * Generates a command of one of these programs, with options of its help in every spelling and operands, in any order.
 */
export function generateCommand(random: Random, helps: HelpOptions, programs: List = PROGRAMS): string[] {
  // The first four read their operands or options in unusual ways, so they are chosen more often.
  const name = random.chance(0.4) ? programs[random.below(4)]! : random.pick(programs);
  const help = helps.get(name) ?? { long: [], short: [] };
  const start = ['sed', 'find', 'uniq'].includes(name) ? random.pick(STARTS as [string[], ...string[][]]) : [];
  const words = Array.from({ length: random.below(5) }, () => wordOf(random, help));
  return [name, ...(random.chance(0.8) ? [...start, ...words] : [...words, ...start])];
}

function wordOf(random: Random, { long, short }: { long: string[]; short: string[] }): string {
  const kind = random.below(10);
  if (kind < 3) return random.pick(VALUES);
  if (kind === 3) return '--';
  if (kind < 7 && long.length > 0) {
    const name = random.pick(long as [string, ...string[]]);
    const spelled = random.chance(0.3) ? name.slice(0, 3 + random.below(name.length)) : name;
    return random.chance(0.4) ? `${spelled}=${random.pick(VALUES)}` : spelled;
  }
  const letters = Array.from({ length: 1 + random.below(2) }, () => letterOf(random, short));
  return `-${letters.join('')}${random.chance(0.4) ? random.pick(VALUES) : ''}`;
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

function letterOf(random: Random, short: string[]): string {
  if (short.length > 0 && random.chance(0.8)) return random.pick(short as [string, ...string[]]);
  return LETTERS[random.below(LETTERS.length)] ?? 'a';
}
