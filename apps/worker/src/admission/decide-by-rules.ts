import {
  type CompiledRules,
  compileRules,
  coversAll,
  type Decision,
  type DecisionContext,
  decide,
  decideOperations,
  isPlainShell,
  type OperationDecision,
  type OperatorRules,
  patternText,
  resolveSandbox,
  rulesNameFiles,
  rulingFor,
} from '@shellfleet/policy';
import type {
  CommandPayload,
  EntryPayload,
  FileOperation,
  PrefixRule,
  ResolvedSessionSpec,
} from '@shellfleet/protocol';
import type { UnreadableByRules } from '../config/allow-section.ts';
import type { AdmissionInput, ApprovalQuestion } from './admission.ts';
import type { RuleDecision, Rules } from './create-admission.ts';
import { directoryPattern, wordsOfFile } from './file-words.ts';

// Evaluates the rules of the operator and of the session for an entry, a file operation, a terminal or a tool call.
// RULES-1. The script, everything else that the entry brings to the shell, and the commands of a fresh shell are each
//          judged by the rules. The strictest finding wins.
// RULES-2. Where rules hold or the session's `approval` asks, the shell receives nothing that they cannot read, unless
//          the operator lists it under `allow.unchecked`. A shell with arguments may hold a script, or read a file of
//          the session.
// RULES-3. The rules of a file with `reportOnly` decide nothing.

export interface RulesOfHost {
  readonly rules: OperatorRules;
}

export interface ReportedDecision {
  input: AdmissionInput;
  requirement: Decision['requirement'];
  /** Patterns of the rules that matched. */
  rules: string[];
}

interface DecideOptions {
  /** What the operator lets pass although no rule can read it. */
  unchecked: readonly UnreadableByRules[];
  /** Receives what rules with `reportOnly` would have decided (RULES-3). */
  onReported(decision: ReportedDecision): void;
}

export function decideByRules(host: RulesOfHost, { unchecked, onReported }: DecideOptions): Rules {
  const reported = new WeakMap<ResolvedSessionSpec, string>();
  const seesAll = (spec: ResolvedSessionSpec) => host.rules.enforced.length > 0 || decidesItself(spec);
  const anyVariables = unchecked.includes('variables');
  const lets = (what: UnreadableByRules, spec: ResolvedSessionSpec) => unchecked.includes(what) || !seesAll(spec);
  const seesShell = (spec: ResolvedSessionSpec) => lets('shells', spec) || isPlainShell(spec);
  return {
    get digest() {
      return host.rules.digest;
    },
    decide(input, granted = []) {
      const { payload, spec } = input;
      const context = { ...contextOf(input, host.rules.enforced, granted), anyVariables };
      // The entry is decided again when its shell is ready. Only the first decision is reported.
      if (reported.get(spec) !== input.entryId) report(input, context, host.rules, onReported);
      reported.set(spec, input.entryId);
      const findings = input.opens || payload.type === 'restart' ? openingFindings(spec, context) : [];
      if ((input.opens || payload.type === 'restart') && !seesShell(spec)) findings.push(unseenShell(spec));
      if (payload.type === 'command') {
        findings.push(findingOf(input, payload, context));
        if (payload.input !== undefined && !lets('stdin', spec)) findings.push(unseenStdin(spec));
      }
      if (payload.type === 'file') findings.push(findingOfFile(payload.operation, context));
      return strictest(findings, payload);
    },
    decideOpening(spec) {
      const findings = openingFindings(spec, openingContext(spec, host.rules.enforced));
      return strictest(seesShell(spec) ? findings : [...findings, unseenShell(spec)]);
    },
    decidesByPath: (operation, spec) => decidesByPath(operation, spec, host.rules.enforced),
    refuseTerminal: (spec) => (lets('terminals', spec) ? undefined : terminalRefusal(spec, host)),
    decideTool: (name) =>
      toFinding(
        decideOperations([{ words: ['tool', name] }], {
          operator: host.rules.enforced,
          approval: undefined,
          sandboxed: false,
        }),
      ),
  };
}

/** Returns whether the spec has rules, or an approval mode under which people are asked. */
function decidesItself({ approval, execPolicy }: ResolvedSessionSpec): boolean {
  return asksPersons(approval) || (execPolicy?.length ?? 0) > 0;
}

const asksPersons = (approval: ResolvedSessionSpec['approval']) => approval !== undefined && approval !== 'never';

type Context = DecisionContext;

function contextOf(
  { payload, spec, attempt }: AdmissionInput,
  operator: readonly CompiledRules[],
  granted: readonly PrefixRule[],
): Context {
  const escalate = attempt.number === 2 || (payload.type === 'command' && payload.escalate !== undefined);
  const answered = granted.length === 0 ? [] : [compileRules(granted, { source: 'approvals' })];
  const { session = [], env = [], ...context } = openingContext(spec, operator);
  const own = payload.type === 'command' ? Object.keys(payload.env ?? {}) : [];
  return { ...context, session: [...session, ...answered], escalate, env: [...new Set([...env, ...own])] };
}

/** Returns the context of the commands of a fresh shell, which never leave the sandbox. */
function openingContext(spec: ResolvedSessionSpec, operator: readonly CompiledRules[]): Context {
  return {
    ...{ operator, session: ownRules(spec), approval: spec.approval, escalate: false },
    env: Object.keys({ ...spec.env, ...spec.secrets }),
    askByDefault: spec.askByDefault,
    sandboxed: resolveSandbox(spec).sandboxed,
    mustStay: spec.sandbox?.selection === 'require',
  };
}

const compiledOwn = new WeakMap<readonly PrefixRule[], CompiledRules>();

/** Compiles the rules of the session. Throws RULES_INVALID. */
function ownRules({ execPolicy }: ResolvedSessionSpec): CompiledRules[] {
  if (execPolicy === undefined) return [];
  const known = compiledOwn.get(execPolicy) ?? compileRules(execPolicy, { source: 'the session (execPolicy)' });
  compiledOwn.set(execPolicy, known);
  return [known];
}

function findingOf(input: AdmissionInput, payload: CommandPayload, context: Context): RuleDecision {
  const decision = decide(payload.script, context);
  const leaves = context.sandboxed && context.escalate;
  if (decision.requirement === 'forbidden') return toFinding(decision);
  if (decision.requirement === 'skip' && input.attempt.number === 1)
    return leaves ? { type: 'allow', outside: true } : { type: 'allow' };
  const { amendment, matchedRules } = decision;
  const reason = input.attempt.number === 1 ? (decision.reason ?? '') : reasonOfSecond(payload, context);
  const { escalate } = payload;
  return {
    type: 'ask',
    question: {
      ...{ reason, matchedRules },
      ...(escalate === undefined ? {} : { justification: escalate.justification }),
      ...(amendment === undefined ? {} : { amendment }),
      ...(leaves ? { outside: true as const } : {}),
    },
  };
}

function findingOfFile(operation: FileOperation, context: Context): RuleDecision {
  const decision = decideOperations(wordsOfFile(operation), context);
  const finding = toFinding(decision);
  const pattern = finding.type === 'ask' ? directoryPattern(operation, decision.asking) : undefined;
  if (finding.type !== 'ask' || pattern === undefined) return finding;
  const covers = { pattern, isCoveredBy: (granted: PrefixRule['pattern']) => coversAll(granted, decision.asking) };
  // A rule with `prompt` always asks again, so an amendment would have no effect. An answer for the session has one.
  const amendment = decision.segments.some(({ row }) => row === 'prompt')
    ? {}
    : { amendment: { pattern, decision: 'allow' as const } };
  return { type: 'ask', question: { ...finding.question, ...amendment, covers } };
}

const READS = ['files.read', 'files.list', 'files.stat'];

/** Returns whether a file operation is decided by its path. Reading is safe unless a rule names it. */
function decidesByPath(
  operation: FileOperation,
  spec: ResolvedSessionSpec,
  enforced: readonly CompiledRules[],
): boolean {
  const rules = [...enforced, ...ownRules(spec)];
  if (decideOperations(wordsOfFile(operation), openingContext(spec, [])).requirement !== 'skip') return true;
  if (wordsOfFile(operation).every(({ isSafe }) => isSafe)) return rulesNameFiles(rules, READS);
  return rulesNameFiles(rules);
}

type Decided = Pick<OperationDecision, 'requirement' | 'reason' | 'matchedRules'>;

function toFinding({ requirement, reason = 'A rule forbids it.', matchedRules }: Decided): RuleDecision {
  if (requirement === 'skip') return { type: 'allow' };
  return requirement === 'forbidden' ? { type: 'forbid', reason } : { type: 'ask', question: { reason, matchedRules } };
}

/** Returns the reason of a question about a second attempt, with the reason for which the rules alone would ask. */
function reasonOfSecond({ script }: CommandPayload, context: Context): string {
  const { requirement, reason = '' } = decide(script, { ...context, escalate: false });
  const denied = 'Its sandbox has denied its first attempt something. It would run once more, outside.';
  return requirement === 'needs-approval' ? `${denied} ${reason}` : denied;
}

/** Returns the findings about startup and shutdown commands, which are decided before there is a shell. */
function openingFindings(spec: ResolvedSessionSpec, context: Context): RuleDecision[] {
  const { startupCommands, shutdownCommands } = spec;
  // The variables of the command are not set for startup and shutdown commands.
  const inside = { ...context, escalate: false, env: Object.keys({ ...spec.env, ...spec.secrets }) };
  return [
    ...startupCommands.map((script) => ofOpening('startup', script, inside)),
    ...shutdownCommands.map((script) => ofOpening('shutdown', script, inside)),
  ];
}

function ofOpening(kind: string, script: string, context: Context): RuleDecision {
  const decision = decide(script, context);
  const reason = `The ${kind} command \`${script}\` of its session: ${decision.reason ?? ''}`;
  return toFinding({ ...decision, reason });
}

function unseenStdin(spec: ResolvedSessionSpec): RuleDecision {
  const reason = 'Its stdin is sent while it runs, so that no rule can read it.';
  return unseen('stdin', reason, 'Give a stdin of at most 1 MiB as text or bytes', spec);
}

function unseenShell(spec: ResolvedSessionSpec): RuleDecision {
  const shell = JSON.stringify((spec.shell ?? []).join(' '));
  const reason = `Its session's shell (${shell}) is not plainly bash, dash, ash or sh of the system, so that it may run what no rule has read.`;
  return unseen('shells', reason, 'Leave `shell` out', spec);
}

/** Asks about, or forbids, what no rule can read (RULES-2). `advice` is the beginning of a sentence. */
function unseen(
  what: UnreadableByRules,
  reason: string,
  advice: string,
  { approval }: ResolvedSessionSpec,
): RuleDecision {
  if (rulingFor('prompt', approval) === 'ask') return { type: 'ask', question: { reason } };
  return {
    type: 'forbid',
    reason: `${reason} The session's \`approval\` lets nobody be asked. ${advice}, or have the operator allow it (\`allow: { unchecked: [${what}] }\` in SHELLFLEET_CONFIG).`,
  };
}

function terminalRefusal({ approval }: ResolvedSessionSpec, { rules }: RulesOfHost): string {
  const setting =
    rules.enforced.length > 0
      ? 'the rules of this host (`rules:` in SHELLFLEET_CONFIG)'
      : asksPersons(approval)
        ? "the session's `approval`"
        : "the session's `execPolicy`";
  return `${setting} cannot check what is typed there. Run commands instead, or have the operator allow terminals beside them (\`allow: { unchecked: [terminals] }\` in SHELLFLEET_CONFIG)`;
}

const STRICTNESS: Record<RuleDecision['type'], number> = { allow: 0, ask: 1, forbid: 2 };

/**
 * Returns the strictest finding (RULES-1). Makes one question of all, and adds whether the entry leaves its sandbox.
 */
function strictest(findings: readonly RuleDecision[], payload?: EntryPayload): RuleDecision {
  const worst = findings.reduce<RuleDecision>(
    (strict, finding) => (STRICTNESS[finding.type] > STRICTNESS[strict.type] ? finding : strict),
    { type: 'allow' },
  );
  if (worst.type === 'allow') return findings.find((finding) => finding.type === 'allow' && finding.outside) ?? worst;
  if (worst.type === 'forbid') return worst;
  const asking = findings.flatMap((finding) => (finding.type === 'ask' ? [finding.question] : []));
  const question = asking.length === 1 ? worst.question : together(asking);
  const leaves = findings.some((finding) => finding.type === 'allow' && finding.outside);
  return { type: 'ask', question: leaves ? { ...question, ...leavingOf(payload) } : question };
}

/** Describes a command that a rule lets out of its sandbox, for a question about another part of the same entry. */
function leavingOf(payload: EntryPayload | undefined): Partial<ApprovalQuestion> {
  const escalate = payload?.type === 'command' ? payload.escalate : undefined;
  return { outside: true, ...(escalate && { justification: escalate.justification }) };
}

/** Makes one question of several. It has no amendment, as a rule would answer only one of them. */
function together(questions: readonly ApprovalQuestion[]): ApprovalQuestion {
  const justification = questions.find((question) => question.justification !== undefined)?.justification;
  return {
    reason: questions.map(({ reason }) => reason).join(' '),
    matchedRules: questions.flatMap(({ matchedRules = [] }) => matchedRules),
    ...(justification === undefined ? {} : { justification }),
    ...(questions.some(({ outside }) => outside) ? { outside: true } : {}),
  };
}

/** Reports what rules with `reportOnly` would have decided otherwise (RULES-3). */
function report(
  input: AdmissionInput,
  context: Context,
  { enforced, reported }: OperatorRules,
  onReported: DecideOptions['onReported'],
): void {
  const { payload } = input;
  if (reported.length === 0 || payload.type === 'restart') return;
  const before = decisionAbout(payload, { ...context, operator: enforced }).matchedRules;
  const { requirement, matchedRules } = decisionAbout(payload, { ...context, operator: [...enforced, ...reported] });
  const added = matchedRules.filter((rule) => !before.includes(rule));
  if (added.length > 0) onReported({ input, requirement, rules: added.map(patternText) });
}

function decisionAbout(payload: Exclude<EntryPayload, { type: 'restart' }>, context: Context) {
  return payload.type === 'command'
    ? decide(payload.script, context)
    : decideOperations(wordsOfFile(payload.operation), context);
}
