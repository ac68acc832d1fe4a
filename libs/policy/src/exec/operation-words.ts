import type { PrefixRule } from '@shellfleet/protocol';
import type { CompiledRules } from './compiled-rules.ts';

// The words of what is judged beside commands: file operations and tool calls. The first word names the operation, the
// words behind it are paths, or the name of a tool.
//
// WORDS-1. A path in a rule stands for itself and everything below it.
// WORDS-2. `prompt` and `forbid` also count for what takes a whole folder that
//          holds their path: its removal, its renaming, a walk through it.
// WORDS-3. No rule about these words allows a command of a shell, where
//          whoever writes files may choose what program a name means.

export interface OperationWords {
  /** Absolute paths in it have neither `.` nor `..`, nor a slash at their end. */
  words: readonly string[];
  /** The operation only reads. */
  isSafe?: boolean;
  /** The operation reaches everything below its paths. */
  takesFolder?: boolean;
  /**
   * Other names of the same act, for rules that ask or forbid: what is renamed is also removed there and written here.
   */
  alsoStrict?: readonly (readonly string[])[];
}

export function isOperationName(word: string): boolean {
  return word.startsWith('files.') || word === 'tool';
}

/** Every rule that an operation matches. */
export function operationRules(
  { allow, strict }: CompiledRules,
  { words, takesFolder = false, alsoStrict = [] }: OperationWords,
): PrefixRule[] {
  const found = new Set<PrefixRule>();
  for (const named of [words, ...alsoStrict])
    for (const { rule, pattern } of strict.get(named[0] ?? '') ?? [])
      if (matchesStrict(named, pattern, takesFolder)) found.add(rule);
  for (const { rule, pattern } of allow.get(words[0] ?? '') ?? []) if (matchesAllow(words, pattern)) found.add(rule);
  return [...found];
}

type Pattern = readonly ReadonlySet<string>[];

export function matchesAllow(words: readonly string[], pattern: Pattern): boolean {
  return pattern.every((element, index) => index === 0 || isIn(words[index], element));
}

function matchesStrict(words: readonly string[], pattern: Pattern, takesFolder: boolean): boolean {
  return pattern.every(
    (element, index) => index === 0 || isIn(words[index], element) || (takesFolder && holds(words[index], element)),
  );
}

/** WORDS-1 */
function isIn(word: string | undefined, element: ReadonlySet<string>): boolean {
  if (word === undefined) return false;
  if (element.has(word)) return true;
  return word.startsWith('/') && [...element].some((path) => isWithin(word, path));
}

/** WORDS-2 */
function holds(word: string | undefined, element: ReadonlySet<string>): boolean {
  return word !== undefined && [...element].some((path) => path.startsWith('/') && isWithin(normalizePath(path), word));
}

function isWithin(path: string, folder: string): boolean {
  if (!folder.startsWith('/')) return false;
  const top = normalizePath(folder);
  return path === top || top === '/' || path.startsWith(`${top}/`);
}

/** An absolute path without `.`, `..`, doubled slashes and a slash at its end. */
export function normalizePath(path: string): string {
  const kept: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') kept.pop();
    else if (part !== '' && part !== '.') kept.push(part);
  }
  return `/${kept.join('/')}`;
}
