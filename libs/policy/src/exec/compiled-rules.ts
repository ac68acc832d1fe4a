import type { PrefixRule } from '@shellfleet/protocol';
import { hiddenCommands, nameOf } from './hidden-commands.ts';
import { isOperationName } from './operation-words.ts';
import type { CommandWords } from './plain-script.ts';

export interface CompiledRule {
  readonly rule: PrefixRule;
  readonly pattern: readonly ReadonlySet<string>[];
}

/** Checked rules, indexed by the first word. */
export interface CompiledRules {
  readonly allow: Map<string, CompiledRule[]>;
  /** Rules that prompt or forbid, by the file name of the program. */
  readonly strict: Map<string, CompiledRule[]>;
  /** Names of programs, by the paths that count as those programs. */
  readonly names: ReadonlyMap<string, string>;
  readonly count: number;
}

export function addTo({ allow, strict }: CompiledRules, compiled: CompiledRule): void {
  const index = compiled.rule.decision === 'allow' ? allow : strict;
  const firsts = [...(compiled.pattern[0] ?? [])];
  for (const key of new Set(index === strict ? firsts.map(fileNameOf) : firsts))
    index.set(key, [...(index.get(key) ?? []), compiled]);
}

/** Returns every rule that a command matches. If the shell may expand a word, the word can match strict rules only. */
export function matchingRules(rules: CompiledRules, command: CommandWords): PrefixRule[] {
  return [...strictRules(rules, hiddenCommands(command).commands), ...allowRules(rules, command)];
}

/**
 * Returns the rules that prompt or forbid any of `commands`: a command and the commands that it starts. The path of a
 * program makes no difference.
 */
export function strictRules({ strict }: CompiledRules, commands: readonly CommandWords[]): PrefixRule[] {
  if (strict.size === 0) return [];
  const matching = new Set<PrefixRule>();
  for (const words of commands)
    for (const { rule, pattern } of strict.get(nameOf(words) ?? '') ?? [])
      if (mayBegin(words, pattern)) matching.add(rule);
  return [...matching];
}

export function allowRules({ allow, names }: CompiledRules, command: CommandWords): PrefixRule[] {
  const first = command[0];
  // WORDS-3
  if (allow.size === 0 || !first?.literal || isOperationName(first.text)) return [];
  const matching = new Set<PrefixRule>();
  for (const name of [first.text, names.get(first.text)])
    for (const { rule, pattern } of name === undefined ? [] : (allow.get(name) ?? []))
      if (begins(command, pattern)) matching.add(rule);
  return [...matching];
}

function begins(command: CommandWords, pattern: readonly ReadonlySet<string>[]): boolean {
  return pattern.every((element, index) => {
    const word = command[index];
    return index === 0 || (word?.literal === true && element.has(word.text));
  });
}

/** Tells whether the command may match the pattern. A word that the shell expands may become any number of words. */
function mayBegin(command: CommandWords, pattern: readonly ReadonlySet<string>[]): boolean {
  for (let index = 1; index < pattern.length; index += 1) {
    const word = command[index];
    if (word?.literal === false) return true;
    if (!word || !pattern[index]?.has(word.text)) return false;
  }
  return true;
}

const fileNameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1);
