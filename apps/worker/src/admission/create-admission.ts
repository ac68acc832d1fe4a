import { createHash } from 'node:crypto';
import type { FileOperation, PrefixRule, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { SessionRef } from '../sandbox/sandbox.ts';
import type { Admission, AdmissionInput, ApprovalQuestion, SessionAdmission, Verdict } from './admission.ts';
import { noWiderSandbox } from './no-wider-sandbox.ts';

// Decides about one entry in steps: by its signature, by the rules, and by the answers of people.
// VERDICT-1. Each step can only refuse what the previous one let pass. Only an answer can admit an entry that asks.
// VERDICT-2. A question that nobody can be asked is a denial.
// VERDICT-3. The digest of a session is empty exactly when no step can refuse anything.
// VERDICT-4. Startup and shutdown commands are part of the question about the entry that opens the shell. Shutdown
//            commands that would ask run only under the rules under which that question was answered.
// VERDICT-5. A command that asks to leave its sandbox and cannot is refused before a person is asked. Otherwise it
//            would run inside, although a person was told that it runs outside.

export interface Signatures {
  /** Digest of the known keys. Empty when anyone may submit. */
  readonly digest: string;
  /** Throws UNAUTHORIZED unless a known producer has signed exactly this entry. */
  check(input: AdmissionInput): Promise<void>;
}

export interface Rules {
  /** Digest of the operator's rules, which changes with every reload. Empty when there are none. */
  readonly digest: string;
  /** Decides about an entry. `granted` are approved rules, which hold like the session's. Throws RULES_INVALID. */
  decide(input: AdmissionInput, granted?: readonly PrefixRule[]): RuleDecision;
  /** Decides about the startup and shutdown commands alone. */
  decideOpening(spec: ResolvedSessionSpec): RuleDecision;
  /** Returns whether a file operation is decided by its path. */
  decidesByPath(operation: FileOperation, spec: ResolvedSessionSpec): boolean;
  /** Returns why no terminal may be opened, as the end of a sentence. Undefined if terminals may be opened. */
  refuseTerminal(spec: ResolvedSessionSpec): string | undefined;
  /** Decides about a tool call by the operator's rules alone, as it belongs to no session. */
  decideTool(name: string): RuleDecision;
}

export type RuleDecision =
  | { type: 'allow'; outside?: true }
  | { type: 'ask'; question: ApprovalQuestion }
  | { type: 'forbid'; reason: string };

export interface Answers {
  /** Looks for an answer. `granted` approves this question, or a rule that `allows` it. Throws APPROVAL_EXPIRED. */
  find(
    input: AdmissionInput,
    asked: ApprovalQuestion,
    allows: (granted: readonly PrefixRule[]) => boolean,
  ): Promise<Answer>;
}
export type Answer =
  | { type: 'granted'; startBy?: number }
  | { type: 'open' }
  | { type: 'denied'; reason: string; by?: 'approver' };

export interface AdmissionSteps {
  signatures: Signatures;
  rules: Rules;
  answers: Answers;
}

export const ANYONE_SUBMITS: Signatures = { digest: '', check: async () => {} };

/** Answers of a host that can ask nobody (VERDICT-2). */
export const NOBODY_ANSWERS: Answers = {
  find: async () => ({ type: 'denied', reason: 'it needs an approval, and this host asks nobody' }),
};

export function createAdmission(steps: AdmissionSteps): Admission {
  return {
    forSession(spec: ResolvedSessionSpec, _ref: SessionRef): SessionAdmission {
      const own = digestOfSession(spec);
      let openedUnder: string | undefined;
      return {
        get digest() {
          const signatures = steps.signatures.digest;
          const rules = steps.rules.digest;
          // The digest is read several times for each entry.
          if (signatures === '' && rules === '' && own === '') return '';
          return sha256([signatures, rules, own].concat(JSON.stringify(spec.sandbox ?? null)).join('\n'));
        },
        decide: (input) => decide(input, steps),
        opened() {
          openedUnder = this.digest;
        },
        refuseStartup() {
          const decision = steps.rules.decideOpening(spec);
          return decision.type === 'forbid' ? decision.reason : undefined;
        },
        refuseShutdown() {
          const decision = steps.rules.decideOpening(spec);
          if (decision.type === 'forbid') return decision.reason;
          // VERDICT-4
          return decision.type === 'ask' && openedUnder !== this.digest ? decision.question.reason : undefined;
        },
        takesRealPaths: (operation) => steps.rules.decidesByPath(operation, spec),
        refuseTerminal: () => steps.rules.refuseTerminal(spec),
      };
    },
  };
}

async function decide(input: AdmissionInput, { signatures, rules, answers }: AdmissionSteps): Promise<Verdict> {
  await signatures.check(input);
  const decision = rules.decide(input);
  const outside = leaves(decision);
  if (outside && input.wider.refusal !== undefined) throw noWiderSandbox(input.wider.refusal);
  switch (decision.type) {
    case 'forbid':
      return { type: 'deny', reason: decision.reason };
    case 'allow':
      return { type: 'admit', ...(outside && { outside }) };
    case 'ask': {
      const directory = await input.directory?.();
      const asked = { ...decision.question, ...(directory && { directory }) };
      const allows = (granted: readonly PrefixRule[]) => rules.decide(input, granted).type === 'allow';
      return toVerdict(asked, await answers.find(input, asked, allows));
    }
  }
}

function toVerdict(asked: ApprovalQuestion, answer: Answer): Verdict {
  if (answer.type === 'open') return { type: 'hold', question: asked };
  if (answer.type === 'denied') {
    const { by } = answer;
    return { type: 'deny', reason: `${asked.reason}; ${answer.reason}`, ...(by === undefined ? {} : { by }) };
  }
  const { startBy } = answer;
  return { type: 'admit', ...(startBy !== undefined && { startBy }), ...(asked.outside && { outside: true }) };
}

function leaves(decision: RuleDecision): true | undefined {
  if (decision.type === 'forbid') return undefined;
  return decision.type === 'ask' ? decision.question.outside : decision.outside;
}

/** Returns an empty digest if nothing in the spec could refuse a command. */
function digestOfSession({ approval, execPolicy }: ResolvedSessionSpec): string {
  if (approval === undefined && execPolicy === undefined) return '';
  return sha256(JSON.stringify([approval ?? null, execPolicy ?? null]));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
