import type { PrefixRule } from '@shellfleet/protocol';
import type { CompiledRules } from './compiled-rules.ts';

// Words of file operations and tool calls. The first word names the operation; the others are paths, or a tool's name.
// WORDS-1. A path in a rule stands for itself and everything below it.
// WORDS-2. `prompt` and `forbid` also match the removal, renaming or listing of a directory above the rule's path.
// WORDS-3. No rule about these words allows a shell command: a session that writes files can replace programs.

export interface OperationWords {
  /** Words of the operation. Absolute paths are normalized (normalizePath). */
  words: readonly string[];
  isSafe?: boolean;
  /** True if the operation reaches everything below its paths. */
  takesDirectory?: boolean;
  /**
   * Other names of the operation, for rules that ask or forbid. A rename, for example, also removes the old path and
   * writes the new one.
   */
  alsoStrict?: readonly (readonly string[])[];
}

export function isOperationName(word: string): boolean {
  return word.startsWith('files.') || word === 'tool';
}

/** Returns every rule that an operation matches. */
export function operationRules(
  { allow, strict }: CompiledRules,
  { words, takesDirectory = false, alsoStrict = [] }: OperationWords,
): PrefixRule[] {
  const found = new Set<PrefixRule>();
  for (const named of [words, ...alsoStrict])
    for (const { rule, pattern } of strict.get(named[0] ?? '') ?? [])
      if (matchesStrict(named, pattern, takesDirectory)) found.add(rule);
  for (const { rule, pattern } of allow.get(words[0] ?? '') ?? []) if (matchesAllow(words, pattern)) found.add(rule);
  return [...found];
}

type Pattern = readonly ReadonlySet<string>[];

export function matchesAllow(words: readonly string[], pattern: Pattern): boolean {
  return pattern.every((element, index) => index === 0 || isIn(words[index], element));
}

function matchesStrict(words: readonly string[], pattern: Pattern, takesDirectory: boolean): boolean {
  return pattern.every(
    (element, index) => index === 0 || isIn(words[index], element) || (takesDirectory && holds(words[index], element)),
  );
}

/** Tells whether a word is the path of a rule, or below it (WORDS-1). */
function isIn(word: string | undefined, element: ReadonlySet<string>): boolean {
  if (word === undefined) return false;
  if (element.has(word)) return true;
  return word.startsWith('/') && [...element].some((path) => isWithin(word, path));
}

/** Tells whether a word is a directory above the path of a rule (WORDS-2). */
function holds(word: string | undefined, element: ReadonlySet<string>): boolean {
  return word !== undefined && [...element].some((path) => path.startsWith('/') && isWithin(normalizePath(path), word));
}

function isWithin(path: string, directory: string): boolean {
  if (!directory.startsWith('/')) return false;
  const top = normalizePath(directory);
  return path === top || top === '/' || path.startsWith(`${top}/`);
}

/** Removes `.`, `..`, doubled slashes and the last slash from an absolute path. */
export function normalizePath(path: string): string {
  const kept: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') kept.pop();
    else if (part !== '' && part !== '.') kept.push(part);
  }
  return `/${kept.join('/')}`;
}
