import {
  type FieldIssue,
  type PrefixRule,
  prefixRuleSchema,
  ShellfleetError,
  toFieldIssues,
  toIssueText,
} from '@shellfleet/protocol';
import { addTo, type CompiledRule, type CompiledRules, matchingRules } from './compiled-rules.ts';
import { isOperationName, operationRules } from './operation-words.ts';
import { readScript } from './read-script.ts';

/** Paths of a program for which the `allow` rules about its name hold. */
export interface HostExecutable {
  name: string;
  paths: string[];
}

export interface RulesOptions {
  /** Path of the rules' file, for errors. */
  source: string;
  hostExecutables?: readonly HostExecutable[];
}

/** Checks rules and their examples. Throws RULES_INVALID with every invalid source, rule and example. */
export function compileRules(given: readonly unknown[], { source, hostExecutables = [] }: RulesOptions): CompiledRules {
  const issues: FieldIssue[] = [];
  const names = namesByPath(hostExecutables, issues);
  const compiled: CompiledRules = { allow: new Map(), strict: new Map(), names, count: given.length };
  for (const [index, value] of given.entries()) {
    const parsed = prefixRuleSchema.safeParse(value, { error: toIssueText });
    const found = parsed.success ? addRule(compiled, parsed.data) : parsed.error.issues.flatMap(toFieldIssues);
    for (const { path, message } of found)
      issues.push({ path: ['rules', index, path].filter((key) => key !== '').join('.'), message });
  }
  if (issues.length === 0) return compiled;
  const list = issues.map(({ path, message }) => `${path}: ${message}`).join('; ');
  throw new ShellfleetError('RULES_INVALID', `The rules of ${source} are not valid: ${list}`, { source, issues });
}

function addRule(compiled: CompiledRules, rule: PrefixRule): FieldIssue[] {
  const pattern = rule.pattern.map((element) => new Set(typeof element === 'string' ? [element] : element));
  const added: CompiledRule = { rule, pattern };
  addTo(compiled, added);
  const alone: CompiledRules = { allow: new Map(), strict: new Map(), names: compiled.names, count: 1 };
  addTo(alone, added);
  return [
    ...(rule.match ?? []).flatMap((example, index) => {
      const matched = matchesExample(alone, example);
      if (matched) return [];
      const reason = matched === undefined ? 'is not one plain command' : 'does not match';
      return [{ path: `match.${index}`, message: `the example \`${example}\` ${reason} \`${patternText(rule)}\`` }];
    }),
    ...(rule.notMatch ?? []).flatMap((example, index) => {
      const matched = matchesExample(alone, example);
      if (matched === false) return [];
      const reason = matched ? 'matches' : 'is not one plain command';
      return [{ path: `notMatch.${index}`, message: `the example \`${example}\` ${reason} \`${patternText(rule)}\`` }];
    }),
  ];
}

/** Tells whether the rule alone matches the example. Returns undefined if the example is not one plain command. */
function matchesExample(alone: CompiledRules, example: string): boolean | undefined {
  const { form, commands } = readScript(example);
  const [command] = commands;
  if (form !== 'plain' || !command || commands.length !== 1) return undefined;
  const words = command.map(({ text }) => text);
  if (isOperationName(words[0] ?? '')) return operationRules(alone, { words }).length > 0;
  return matchingRules(alone, command).length > 0;
}

function namesByPath(executables: readonly HostExecutable[], issues: FieldIssue[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const [index, { name, paths }] of executables.entries()) {
    if (name === '' || name.includes('/'))
      issues.push({ path: `hostExecutables.${index}.name`, message: 'must be the name of a program, without a path' });
    for (const [at, path] of paths.entries())
      if (isPathOf(path, name)) names.set(path, name);
      else
        issues.push({
          path: `hostExecutables.${index}.paths.${at}`,
          message: `must be an absolute path that ends in /${name}, without . and ..`,
        });
  }
  return names;
}

function isPathOf(path: string, name: string): boolean {
  return path.startsWith('/') && path.endsWith(`/${name}`) && !/\/(\.{0,2})(\/|$)/.test(path);
}

/** Writes a pattern for a person: `git push fetch`. */
export function patternText({ pattern }: PrefixRule): string {
  return pattern.map((element) => (typeof element === 'string' ? element : element.join('|'))).join(' ');
}
