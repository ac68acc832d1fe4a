// Patterns of paths as in a shell: `*`, `?` and `[a-z]` within a name, `**` for any number of directories.

export interface Glob {
  /** The longest leading directory without a pattern. */
  base: string;
  /** Number of levels below `base` that are walked. 0: all levels. */
  depth: number;
  matches(relative: string): boolean;
}

/** Parses a path. Returns undefined when it has no pattern. */
export function parseGlob(path: string): Glob | undefined {
  const names = path.split('/').filter((name) => name !== '');
  const first = names.findIndex((name) => /[*?[]/.test(name));
  if (first < 0) return undefined;
  const pattern = names.slice(first);
  return {
    base: `/${names.slice(0, first).join('/')}`,
    depth: pattern.includes('**') ? 0 : pattern.length,
    matches: (relative) => matchesPath(pattern, relative.split('/')),
  };
}

/** Compares each name with each part of the pattern at most once. */
function matchesPath(pattern: readonly string[], names: readonly string[]): boolean {
  /** Indexes of the parts of the pattern that the next name may match. */
  let open = new Set([0]);
  for (const name of names) {
    const next = new Set<number>();
    for (const at of withSkipped(open, pattern)) {
      const part = pattern[at];
      if (part === '**') {
        if (!name.startsWith('.')) next.add(at);
      } else if (part !== undefined && matchesName(part, name)) {
        next.add(at + 1);
      }
    }
    open = next;
  }
  return withSkipped(open, pattern).has(pattern.length);
}

/** Adds the part after each `**`, because `**` may match no directory. */
function withSkipped(open: ReadonlySet<number>, pattern: readonly string[]): Set<number> {
  const all = new Set(open);
  for (const at of all) if (pattern[at] === '**') all.add(at + 1);
  return all;
}

/** Backtracks to the last `*` only, so the time is at most the product of the two lengths. */
function matchesName(pattern: string, name: string): boolean {
  if (name.startsWith('.') && !pattern.startsWith('.')) return false;
  const tokens = toTokens(pattern);
  const letters = [...name];
  let at = 0;
  let token = 0;
  let star: { token: number; at: number } | undefined;
  while (at < letters.length) {
    const accepts = tokens[token];
    if (accepts === '*') {
      star = { token, at };
      token += 1;
    } else if (accepts?.(letters[at] as string)) {
      token += 1;
      at += 1;
    } else if (star !== undefined) {
      star.at += 1;
      at = star.at;
      token = star.token + 1;
    } else {
      return false;
    }
  }
  return tokens.slice(token).every((rest) => rest === '*');
}

type Token = '*' | ((letter: string) => boolean);

function toTokens(pattern: string): Token[] {
  const tokens: Token[] = [];
  const letters = [...pattern];
  for (let at = 0; at < letters.length; at++) {
    const letter = letters[at] as string;
    const close = letter === '[' ? letters.indexOf(']', at + 2) : -1;
    if (letter === '*') tokens.push('*');
    else if (letter === '?') tokens.push(() => true);
    else if (close > 0) {
      tokens.push(toClass(letters.slice(at + 1, close)));
      at = close;
    } else tokens.push((given) => given === letter);
  }
  return tokens;
}

function toClass(letters: readonly string[]): (letter: string) => boolean {
  const negated = letters[0] === '!' || letters[0] === '^';
  const members = negated ? letters.slice(1) : letters;
  const ranges: [string, string][] = [];
  for (let at = 0; at < members.length; at++) {
    const from = members[at] as string;
    const isRange = members[at + 1] === '-' && at + 2 < members.length;
    ranges.push([from, isRange ? (members[at + 2] as string) : from]);
    if (isRange) at += 2;
  }
  return (letter) => ranges.some(([from, to]) => from <= letter && letter <= to) !== negated;
}
