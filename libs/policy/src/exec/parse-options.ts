// Reads options as getopt_long does, and accepts listed options only. Abbreviations are not accepted: `--fil` may mean
// `--file` in one version of a program and be ambiguous in the next.

export interface HarmlessOptions {
  /** Letters as in getopt's option string: `nl:` is `-n` without a value and `-l` with a value. */
  readonly short: string;
  /** Long names in full: `quiet`, `wrap=` with a value, `group[=]` with an optional value. */
  readonly long: readonly string[];
}

export interface ParsedOptions {
  /** Options with their values, in order. Long options have no dashes here. */
  readonly options: readonly { name: string; value?: string | undefined }[];
  readonly operands: readonly string[];
}

/**
 * Returns both ways in which a program may read its words. After the first operand, options are still options (GNU), or
 * they are operands (POSIXLY_CORRECT, other systems). Returns undefined if an option is not listed or lacks its value.
 */
export function parseOptions(args: readonly string[], harmless: HarmlessOptions): ParsedOptions[] | undefined {
  const permuted = parse(args, harmless, true);
  const ordered = parse(args, harmless, false);
  return permuted && ordered && [permuted, ordered];
}

function parse(args: readonly string[], harmless: HarmlessOptions, permutes: boolean): ParsedOptions | undefined {
  const options: { name: string; value?: string | undefined }[] = [];
  const operands: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at] as string;
    if (word === '--') return { options, operands: [...operands, ...args.slice(at + 1)] };
    if (word === '-' || !word.startsWith('-')) {
      if (!permutes) return { options, operands: [...operands, ...args.slice(at)] };
      operands.push(word);
      continue;
    }
    const read = word.startsWith('--') ? readLong(word.slice(2), harmless) : readShort(word.slice(1), harmless);
    if (!read) return undefined;
    options.push(...read.options);
    if (read.lacksValue === undefined) continue;
    at += 1;
    if (at >= args.length) return undefined;
    options.push({ name: read.lacksValue, value: args[at] });
  }
  return { options, operands };
}

interface ReadWord {
  options: { name: string; value?: string | undefined }[];
  /** Name of the option whose value is the next word. */
  lacksValue?: string;
}

function readLong(text: string, { long }: HarmlessOptions): ReadWord | undefined {
  const [name = '', ...rest] = text.split('=');
  const value = rest.length === 0 ? undefined : rest.join('=');
  if (long.includes(`${name}=`)) return value === undefined ? { options: [], lacksValue: name } : one(name, value);
  if (long.includes(`${name}[=]`)) return one(name, value);
  return long.includes(name) && value === undefined ? one(name) : undefined;
}

const one = (name: string, value?: string): ReadWord => ({ options: [{ name, value }] });

/** Reads short options. `-nE` is two options, and `-l5` is one with a value. */
function readShort(letters: string, { short }: HarmlessOptions): ReadWord | undefined {
  const options: { name: string; value?: string | undefined }[] = [];
  for (let at = 0; at < letters.length; at += 1) {
    const name = letters[at] as string;
    const known = name === ':' ? -1 : short.indexOf(name);
    if (known < 0) return undefined;
    if (short[known + 1] !== ':') options.push({ name });
    else if (at + 1 === letters.length) return { options, lacksValue: name };
    else return { options: [...options, { name, value: letters.slice(at + 1) }] };
  }
  return { options };
}
