// Commands that change nothing and run nothing, whatever their other arguments. They are not asked about where an approval
// policy asks about everything else. That they read is the sandbox's concern.

type Check = (args: readonly string[]) => boolean;
const always: Check = () => true;
const without =
  (...options: RegExp[]): Check =>
  (args) =>
    !args.some((arg) => options.some((option) => option.test(arg)));

const KNOWN_SAFE: ReadonlyMap<string, Check> = new Map<string, Check>([
  ...'cat cd cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tac tail tr true uname wc which whoami'
    .split(' ')
    .map((name): [string, Check] => [name, always]),
  // A second operand is a file that it writes.
  ['uniq', (args) => args.filter((arg) => !arg.startsWith('-') || arg === '-').length < 2 && !args.includes('--')],
  ['base64', without(/^-[^-]*o/, /^--o/)],
  ['find', without(/^-(exec|ok|delete|fls|fprint)/)],
  ['rg', without(/^--(pre|hostname-bin|search-zip)/, /^-[^-]*z/)],
  [
    'sed',
    (args) => args.length >= 2 && args.length <= 3 && args[0] === '-n' && /^[0-9]+(,[0-9]+)?p$/.test(args[1] ?? ''),
  ],
]);

/** Takes the words of a command, all of them known. */
export function isKnownSafe([name = '', ...args]: readonly string[]): boolean {
  const check = KNOWN_SAFE.get(name.replace(/^\/(?:usr\/)?bin\//, ''));
  return check?.(args) ?? false;
}
