import type { PrefixRule } from '@shellfleet/protocol';
import { amendmentFor } from './amendment.ts';
import { patternText } from './compile-rules.ts';
import { allowRules, type CompiledRules, strictRules } from './compiled-rules.ts';
import { isDangerous } from './dangerous.ts';
import {
  type AskedFor,
  defaultRuling,
  REQUIREMENTS,
  type Row,
  RULINGS,
  type Ruling,
  rulingFor,
  STRICTNESS,
} from './decision-table.ts';
import { hiddenCommands } from './hidden-commands.ts';
import { isKnownSafe } from './known-safe.ts';
import type { CommandWords } from './plain-script.ts';
import { type Reading, readScript } from './read-script.ts';
import { REJECTED_PROMPT, requirementWithoutRule } from './requirement-without-rule.ts';

export interface DecisionContext extends AskedFor {
  /** Rules of all files of the operator. */
  operator: readonly CompiledRules[];
  /**
   * Rules of the session, and rules that a person approved. An `allow` of them answers a question, but never lets a
   * command leave its sandbox.
   */
  session?: readonly CompiledRules[];
  /** Whether the submitter asks for the script to run outside the sandbox. */
  escalate: boolean;
  /** True if `selection` is 'require', so that the script may not leave the sandbox. */
  mustStay?: boolean;
  /** Names of all variables of the command and its session, secrets included. */
  env?: readonly string[];
  /** Whether the operator lets commands leave their sandbox with variables that are not known to be harmless. */
  anyVariables?: boolean;
}

/** One command of a script, with its row in the table. */
export interface Segment {
  /** Words without quotes. A word that the shell expands is kept as it is written. */
  words: readonly string[];
  row: Row;
  matchedRules: readonly PrefixRule[];
}

export interface Decision {
  requirement: 'skip' | 'needs-approval' | 'forbidden';
  reason?: string;
  matchedRules: PrefixRule[];
  classification: 'safe' | 'dangerous' | 'unknown';
  /** Whether rules of the operator allow every command, so that the script may run outside the sandbox. */
  bypassSandbox: boolean;
  /** Rule that would allow the script from now on, if a person approves the rule. */
  amendment?: PrefixRule;
  segments: Segment[];
}

interface DecidedCommand extends Segment {
  command: CommandWords;
  classification: Decision['classification'];
  byOperator: boolean;
  ruling: Ruling;
  /** Whether the command starts another command that cannot be read and that no rule allows. */
  hides: boolean;
}

interface Cause {
  ruling: Ruling;
  reason: string | undefined;
}

/** Decides by the words of a script whether it may run, whether a person must be asked, or whether it may not run. */
export function decide(script: string, context: DecisionContext): Decision {
  const moving = movingVariables(context);
  const reading = underVariables(readScript(script), moving);
  const decided = reading.commands.map((command) => decideCommand(command, reading.form, context));
  const causes: Cause[] = decided.map((segment) => ({ ruling: segment.ruling, reason: reasonOf(segment, context) }));
  causes.push(...wholeCauses(reading, moving, context));
  for (const { words } of decided.filter(({ hides }) => hides))
    causes.push(unreadableCause(`\`${words.join(' ')}\` starts what cannot be read.`, context));
  const escapes = context.sandboxed && context.escalate;
  const bypassSandbox =
    reading.form === 'plain' &&
    decided.length > 0 &&
    decided.every(({ byOperator }) => byOperator) &&
    !context.mustStay;
  if (escapes && !bypassSandbox) causes.push(escalation(context));
  const strictest = causes.reduce(
    (worst, cause) => (STRICTNESS[cause.ruling] > STRICTNESS[worst.ruling] ? cause : worst),
    ALLOWED,
  );
  const amendment = strictest.ruling === 'ask' && !escapes && reading.form === 'plain' ? amend(decided) : undefined;
  return {
    requirement: REQUIREMENTS[strictest.ruling],
    ...(strictest.reason !== undefined && { reason: strictest.reason }),
    matchedRules: [...new Set(decided.flatMap(({ matchedRules }) => matchedRules))],
    classification: classify(reading, decided),
    bypassSandbox: bypassSandbox && strictest.ruling === 'allow',
    ...(amendment && { amendment }),
    segments: decided.map(({ words, row, matchedRules }) => ({ words, row, matchedRules })),
  };
}

const ALLOWED: Cause = { ruling: 'allow', reason: undefined };

/**
 * Variables that determine which program a name starts, or what a known program loads. A script that sets one is not
 * plain.
 */
const MOVES_PROGRAMS = /^(PATH|LD_.*|GCONV_PATH|RIPGREP_CONFIG_PATH)$/;

/** Variables that change only what programs print, and make them start nothing. */
const HARMLESS = /^(LANG|LC_[A-Z]+|TZ|CI|NO_COLOR|COLUMNS|LINES)$/;

/**
 * Returns the variables that may change what the words of the script do. Inside the sandbox these are the variables
 * that choose programs. Outside they are all variables that are not known to be harmless, because many make a program
 * start others.
 */
function movingVariables({ env = [], escalate, sandboxed, anyVariables }: DecisionContext): string[] {
  const leaves = sandboxed && escalate && anyVariables !== true;
  return env.filter((name) => (leaves ? !HARMLESS.test(name) : MOVES_PROGRAMS.test(name)));
}

function underVariables(reading: Reading, moving: readonly string[]): Reading {
  return reading.form === 'unreadable' || moving.length === 0 ? reading : { ...reading, form: 'opaque' };
}

function decideCommand(command: CommandWords, form: Reading['form'], context: DecisionContext): DecidedCommand {
  const { operator, session = [] } = context;
  const { commands, unreadable } = hiddenCommands(command);
  // An opaque script may run more commands than were found, so no rule can allow a part of it.
  const mayAllow = form === 'plain' || form === 'document';
  const matching = (rules: CompiledRules): PrefixRule[] =>
    mayAllow ? [...strictRules(rules, commands), ...allowRules(rules, command)] : strictRules(rules, commands);
  const ofOperator = operator.flatMap(matching);
  const matchedRules = [...ofOperator, ...session.flatMap(matching)];
  const words = command.map(({ text }) => text);
  const classification = isDangerous(commands) ? 'dangerous' : classifyCommand(command, form, words);
  const row = strictestRow(matchedRules) ?? classification;
  const byOperator = row === 'allow' && ofOperator.length > 0;
  const ruling = defaultRuling(row, context);
  return {
    words,
    command,
    matchedRules,
    row,
    classification,
    byOperator,
    ruling,
    hides: unreadable && row !== 'allow',
  };
}

function strictestRow(rules: readonly PrefixRule[]): 'forbid' | 'prompt' | 'allow' | undefined {
  for (const decision of ['forbid', 'prompt', 'allow'] as const)
    if (rules.some((rule) => rule.decision === decision)) return decision;
  return undefined;
}

function classifyCommand(command: CommandWords, form: Reading['form'], words: string[]): 'safe' | 'unknown' {
  const safe = form === 'plain' && command.every(({ literal }) => literal) && isKnownSafe(words);
  return safe ? 'safe' : 'unknown';
}

function classify({ form }: Reading, decided: readonly DecidedCommand[]): Decision['classification'] {
  if (decided.some(({ classification }) => classification === 'dangerous')) return 'dangerous';
  return form === 'plain' && decided.every(({ classification }) => classification === 'safe') ? 'safe' : 'unknown';
}

/** Returns the reasons to ask about the script as a whole. They apply if its commands are not all known. */
function wholeCauses({ form, tooLong }: Reading, moving: readonly string[], context: DecisionContext): Cause[] {
  const { operator, session = [] } = context;
  if (form === 'opaque') {
    const ruling = defaultRuling('unknown', context);
    const because =
      moving.length > 0
        ? `The variables ${moving.join(', ')} may change what it runs, so that no rule can allow it.`
        : 'It holds more than plain commands, so that no rule can allow it.';
    return [{ ruling, reason: ruling === 'forbid' ? REJECTED_PROMPT : because }];
  }
  if (form !== 'unreadable') return [];
  // A long comment can make the script too long to read. Such a comment must not hide a command from the rules.
  if (tooLong && [...operator, ...session].some(({ strict }) => strict.size > 0))
    return [{ ruling: 'forbid', reason: 'It is too long to be compared with the rules that forbid or ask.' }];
  return [unreadableCause(tooLong ? 'It is too long to be read.' : 'No parser can read it.', context)];
}

function unreadableCause(because: string, { approval, sandboxed }: DecisionContext): Cause {
  const { requirement, reason } = requirementWithoutRule(approval, sandboxed);
  return { ruling: RULINGS[requirement], reason: reason ?? because };
}

function escalation({ approval, mustStay }: DecisionContext): Cause {
  if (mustStay) return { ruling: 'forbid', reason: 'It asks to leave the sandbox, which the session requires.' };
  const ruling = rulingFor('escalation', approval);
  if (ruling === 'ask') return { ruling, reason: 'It asks to leave the sandbox.' };
  return {
    ruling,
    reason: typeof approval === 'object' ? REJECTED_PROMPT : 'It asks to leave the sandbox, and nothing may be asked.',
  };
}

/** Returns an amendment if the script would start except for a single command, about which no rule asks. */
function amend(decided: readonly DecidedCommand[]): PrefixRule | undefined {
  const asking = decided.filter(({ ruling }) => ruling !== 'allow');
  const [first, ...others] = asking;
  if (!first || asking.some(({ row }) => row !== 'unknown' && row !== 'safe')) return undefined;
  if (others.some(({ words }) => JSON.stringify(words) !== JSON.stringify(first.words))) return undefined;
  return amendmentFor(first.command);
}

function reasonOf(
  { row, words, matchedRules, ruling }: DecidedCommand,
  { askByDefault }: DecisionContext,
): string | undefined {
  if (ruling === 'allow') return undefined;
  const text = words.join(' ');
  if (row === 'safe' || (row === 'unknown' && askByDefault === 'sandboxed')) {
    if (ruling === 'forbid') return REJECTED_PROMPT;
    return `No rule decides about \`${text}\`, and the session asks about every such command.`;
  }
  if (row === 'unknown') return `\`${text}\` is not known to be safe, and no rule allows it.`;
  if (row === 'dangerous') return `\`${text}\` is dangerous${ruling === 'forbid' ? ', and nothing may be asked' : ''}.`;
  const rule = matchedRules.find(({ decision }) => decision === row);
  const because = rule?.justification === undefined ? '' : ` ${rule.justification}`;
  const verb =
    row === 'forbid' ? 'forbids' : ruling === 'forbid' ? 'asks about, and nothing may be asked about,' : 'asks about';
  return `The rule \`${rule ? patternText(rule) : ''}\` ${verb} \`${text}\`.${because}`;
}
