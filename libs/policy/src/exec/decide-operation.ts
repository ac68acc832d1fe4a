import type { PrefixRule } from '@shellfleet/protocol';
import { patternText } from './compile-rules.ts';
import type { CompiledRules } from './compiled-rules.ts';
import type { Decision, DecisionContext, Segment } from './decide.ts';
import { type AskedFor, defaultRuling, REQUIREMENTS, type Ruling, STRICTNESS } from './decision-table.ts';
import { isOperationName, matchesAllow, type OperationWords, operationRules } from './operation-words.ts';
import { REJECTED_PROMPT } from './requirement-without-rule.ts';

export interface OperationDecision extends Pick<Decision, 'requirement' | 'reason' | 'matchedRules' | 'segments'> {
  /** The operations about which a person is asked. */
  asking: readonly OperationWords[];
}

interface DecidedOperation extends Segment {
  operation: OperationWords;
  ruling: Ruling;
}

type OperationContext = Pick<DecisionContext, 'operator' | 'session'> & AskedFor;

/**
 * Decides about file operations or a tool call by the rules and the decision table for commands. The strictest ruling
 * wins.
 */
export function decideOperations(operations: readonly OperationWords[], context: OperationContext): OperationDecision {
  const decided = operations.map((operation) => decideOne(operation, context));
  const strictest = decided.reduce<DecidedOperation | undefined>(
    (worst, one) => (worst === undefined || STRICTNESS[one.ruling] > STRICTNESS[worst.ruling] ? one : worst),
    undefined,
  );
  const reason = strictest && reasonOf(strictest, context);
  return {
    requirement: REQUIREMENTS[strictest?.ruling ?? 'allow'],
    ...(reason === undefined ? {} : { reason }),
    matchedRules: [...new Set(decided.flatMap(({ matchedRules }) => matchedRules))],
    segments: decided.map(({ words, row, matchedRules }) => ({ words, row, matchedRules })),
    asking: decided.flatMap(({ ruling, operation }) => (ruling === 'ask' ? [operation] : [])),
  };
}

function decideOne(
  operation: OperationWords,
  { operator, session = [], ...asked }: OperationContext,
): DecidedOperation {
  const matchedRules = [...operator, ...session].flatMap((rules) => operationRules(rules, operation));
  const row = strictestRow(matchedRules) ?? (operation.isSafe ? 'safe' : 'unknown');
  return { operation, words: operation.words, matchedRules, row, ruling: defaultRuling(row, asked) };
}

function strictestRow(rules: readonly PrefixRule[]): 'forbid' | 'prompt' | 'allow' | undefined {
  for (const decision of ['forbid', 'prompt', 'allow'] as const)
    if (rules.some((rule) => rule.decision === decision)) return decision;
  return undefined;
}

function reasonOf(
  { row, words, matchedRules, ruling }: DecidedOperation,
  { askByDefault }: AskedFor,
): string | undefined {
  if (ruling === 'allow') return undefined;
  const text = words.join(' ');
  if (row === 'safe' || (row === 'unknown' && askByDefault === 'sandboxed')) {
    if (ruling === 'forbid') return REJECTED_PROMPT;
    return `No rule decides about \`${text}\`, and the session asks about every such operation.`;
  }
  if (row === 'unknown') return `\`${text}\` is not known to be safe, and no rule allows it.`;
  const rule = matchedRules.find(({ decision }) => decision === row);
  const because = rule?.justification === undefined ? '' : ` ${rule.justification}`;
  const verb =
    row === 'forbid' ? 'forbids' : ruling === 'forbid' ? 'asks about, and nothing may be asked about,' : 'asks about';
  return `The rule \`${rule ? patternText(rule) : ''}\` ${verb} \`${text}\`.${because}`;
}

/**
 * Tells whether a pattern covers all operations. A pattern that names a directory covers everything in the directory.
 */
export function coversAll(pattern: PrefixRule['pattern'], operations: readonly OperationWords[]): boolean {
  const sets = pattern.map((element) => new Set(typeof element === 'string' ? [element] : element));
  return operations.every(({ words }) => sets[0]?.has(words[0] ?? '') && matchesAllow(words, sets));
}

/**
 * Tells whether any rule is about file operations. With `names`, tells whether a rule that asks or forbids is about one
 * of these words.
 */
export function rulesNameFiles(rules: readonly CompiledRules[], names?: readonly string[]): boolean {
  const isMeant = (word: string) =>
    names === undefined ? isOperationName(word) && word !== 'tool' : names.includes(word);
  return rules.some(({ allow, strict }) =>
    [...strict.keys(), ...(names === undefined ? allow.keys() : [])].some(isMeant),
  );
}
