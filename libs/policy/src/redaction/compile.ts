import {
  type FieldIssue,
  type RedactionRule,
  redactionRulesSchema,
  ShellfleetError,
  toFieldIssues,
  toIssueText,
} from '@shellfleet/protocol';
import { RE2JSSyntaxException } from 're2js';
import { DETECTORS } from './detectors/detectors.ts';
import { customPattern } from './patterns/custom-pattern.ts';
import { compilePattern, type Pattern } from './patterns/program.ts';
import { TimeBudget } from './patterns/time-budget.ts';
import { type RedactionBlock, type Redactor, StreamRedactor } from './redactor.ts';
import { knownSecrets, type RedactionWarning } from './secrets/known-secrets.ts';
import { shareTable } from './shared-tables.ts';
import type { Rule, Source } from './source.ts';
import { PairTable } from './spots.ts';
import { TOKEN_TYPES, tokens } from './tokens/tokens.ts';

export interface RedactionOptions {
  rules?: readonly RedactionRule[];
  /** Values by name. They are found in every written form that docs/output.md lists, whatever the rules. */
  secrets?: Record<string, string>;
  /** The tenant's key for the strategy `hash`. Equal values of one tenant have equal hashes. */
  hashKey: Uint8Array;
  /** Whether tokens of well-known formats are found. Default: true. */
  tokens?: boolean;
  /** Monotonic clock in milliseconds, for the time budget of custom patterns. Without a clock there is no budget. */
  now?: () => number;
}

/** A session's rules and secrets, compiled once for all of its streams and texts. */
export interface Redaction {
  /**
   * Creates a redactor for one stream. `before`: the last bytes that an earlier redactor of the same stream released.
   */
  redactor(options?: { before?: Uint8Array }): Redactor;
  /** Redacts a whole text: an error, a command's script, the name of a file, a line of a log. */
  text(text: string): RedactedText;
  readonly warnings: readonly RedactionWarning[];
}

export interface RedactedText {
  text: string;
  counts: Readonly<Record<string, number>>;
  blocked: RedactionBlock | undefined;
}

/** Compiles rules and secrets. Throws SESSION_SPEC_INVALID with every rule that can never work. */
export function compileRedaction(options: RedactionOptions): Redaction {
  const rules = compileRules(options.rules ?? []);
  const secrets = knownSecrets(options.secrets ?? {}, { type: 'secret', strategy: 'redact', rank: 0 });
  const tokenSources = tokens(rules.tokens, options.tokens === false ? 'not' : 'too');
  const shared = [...secrets.sources, ...tokenSources, ...rules.detectors];

  let table: PairTable | undefined;
  const pairs = (): PairTable => {
    table ??= shareTable(pairsOf(shared));
    return table;
  };

  const createRedactor = (before?: Uint8Array): Redactor => {
    const budget = new TimeBudget(options.now);
    const custom = rules.patterns.map(({ rule, pattern }) => customPattern(rule, pattern, budget));
    const sources = custom.length === 0 ? shared : [...shared, ...custom];
    return new StreamRedactor({ sources, pairs, budget, hashKey: options.hashKey, before });
  };
  return {
    redactor: ({ before } = {}) => createRedactor(before),
    text: (text) => redactText(createRedactor(), text),
    warnings: secrets.warnings,
  };
}

/** Throws SESSION_SPEC_INVALID for rules that can never work, before a session is opened with them. */
export function validateRedaction(spec: {
  redaction: readonly RedactionRule[];
  secrets: Record<string, string>;
}): void {
  if (spec.redaction.length === 0) return;
  compileRedaction({ rules: spec.redaction, secrets: spec.secrets, hashKey: new Uint8Array(32) });
}

/** Creates a redactor from rules alone. It finds tokens too, and its hash key is random. */
export function createRedactor(rules: readonly RedactionRule[]): Redactor {
  return compileRedaction({ rules, hashKey: crypto.getRandomValues(new Uint8Array(32)) }).redactor();
}

function pairsOf(sources: readonly Source[]): PairTable {
  const pairs = new PairTable();
  for (const source of sources) source.mark?.(pairs);
  return pairs;
}

function redactText(redactor: Redactor, text: string): RedactedText {
  const bytes = Buffer.concat([redactor.push(Buffer.from(text)), redactor.end()]);
  return { text: bytes.toString(), counts: redactor.counts, blocked: redactor.blocked };
}

interface CompiledRules {
  detectors: Source[];
  /** Types of tokens for which a rule sets the strategy. */
  tokens: Map<string, Rule>;
  patterns: { rule: Rule; pattern: Pattern }[];
}

function compileRules(given: readonly RedactionRule[]): CompiledRules {
  const compiled: CompiledRules = { detectors: [], tokens: new Map(), patterns: [] };
  const issues: FieldIssue[] = shapeIssues(given);
  for (const [index, { type, strategy, pattern }] of issues.length > 0 ? [] : given.entries()) {
    const rule: Rule = { type, strategy, rank: rankOf(strategy, index) };
    const detector = DETECTORS.get(type);
    if (pattern !== undefined) addPattern(compiled, rule, pattern, index, issues);
    else if (detector) compiled.detectors.push(detector(rule));
    else if (TOKEN_TYPES.has(type)) compiled.tokens.set(type, compiled.tokens.get(type) ?? rule);
    else issues.push({ path: `redaction.${index}.type`, message: unknownType(type) });
  }
  if (issues.length === 0) return compiled;
  const list = issues.map(({ path, message }) => `${path}: ${message}`).join('; ');
  throw new ShellfleetError('SESSION_SPEC_INVALID', `The redaction rules are not valid: ${list}`, { issues });
}

function shapeIssues(given: readonly RedactionRule[]): FieldIssue[] {
  const parsed = redactionRulesSchema.safeParse(given, { error: toIssueText });
  const issues = parsed.success ? [] : parsed.error.issues;
  return issues.flatMap((issue) => toFieldIssues({ ...issue, path: ['redaction', ...issue.path] }));
}

/** Returns the rank: known secrets (0), rules that block, then other rules; within each, the order of the list. */
function rankOf(strategy: Rule['strategy'], index: number): number {
  return strategy === 'block' ? 1 + index : 1_000 + index;
}

/** Adds a custom pattern. Messages do not repeat the pattern, since the reader may not be the rule's author. */
function addPattern(compiled: CompiledRules, rule: Rule, source: string, index: number, issues: FieldIssue[]): void {
  try {
    compiled.patterns.push({ rule, pattern: compilePattern(source) });
  } catch (error) {
    issues.push({
      path: `redaction.${index}.pattern`,
      message: reasonOf(error),
    });
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof RE2JSSyntaxException) return `is not a pattern that re2 takes: ${error.getDescription()}`;
  return error instanceof Error ? error.message : String(error);
}

function unknownType(type: string): string {
  const known = [...DETECTORS.keys()].join(', ');
  return `${type} is not a type that is built in (${known}, or one of docs/output.md's tokens), and has no pattern`;
}
