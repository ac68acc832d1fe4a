import { compileRules, type Decision, decide } from '@shellfleet/policy';
import type { PrefixRule } from '@shellfleet/protocol';

/** Directory of the trial's programs. */
export const PROGRAMS_PATH = '/trial/programs';

/** Programs that record their arguments. `PATH` has no other programs. */
export const PROGRAMS = 'git cargo tool say cat find sed uniq grep rm wipe evil status log head ls x a look'.split(' ');

const allow = (...pattern: PrefixRule['pattern']): PrefixRule => ({ pattern, decision: 'allow' });
const RULES = [allow('git', ['status', 'log']), allow('cargo', 'check'), allow('tool', 'look'), allow('say')];
const compiled = compileRules(RULES, {
  source: 'the trial',
  hostExecutables: [{ name: 'tool', paths: [`${PROGRAMS_PATH}/tool`] }],
});

/** Decides about a script like a worker, in a session that asks about every unknown command. */
export function decideScript(script: string): Decision {
  return decide(script, { operator: [compiled], approval: 'unless-trusted', sandboxed: true, escalate: false });
}

/**
 * Returns whether the rules allow the executed words. It reads words, not scripts, so it shares no parser with the
 * rules that it checks.
 */
export function isCovered(argv: readonly string[], { bypassSandbox }: Decision): boolean {
  const [path = '', ...args] = argv;
  const name = path === `${PROGRAMS_PATH}/tool` ? 'tool' : path;
  const byRule = RULES.some(({ pattern }) =>
    pattern.every((element, index) => [element].flat().includes([name, ...args][index] ?? '')),
  );
  return byRule || (!bypassSandbox && isSafe(name, args));
}

function isSafe(name: string, args: readonly string[]): boolean {
  if (['cat', 'grep', 'head', 'ls', 'rev'].includes(name)) return true;
  if (name === 'find') return !args.some((arg) => /^-(exec|ok|delete|f(ls|print))/.test(arg));
  // Of the trial's options, `-s` takes a value for uniq and none for sed.
  const isOption = (arg: string): boolean => ['-n', '-r', '-s', '--'].includes(arg);
  const read = name === 'uniq' ? args.filter((_, index) => args[index - 1] !== '-s') : args;
  const known = read.every((arg) => isOption(arg) || arg === '-' || !arg.startsWith('-'));
  const operands = read.filter((arg) => !isOption(arg));
  if (name === 'uniq') return known && operands.length < 2;
  return name === 'sed' && known && /^\d+(,\d+)?p$/.test(operands[0] ?? '');
}
