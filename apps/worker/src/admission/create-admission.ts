import { createHash } from 'node:crypto';
import type { PrefixRule, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { SessionRef } from '../sandbox/sandbox.ts';
import type { Admission, AdmissionQuestion, ApprovalQuestion, SessionAdmission, Verdict } from './admission.ts';

// The verdict about one entry, one step after another: who submitted it, what the rules say, what a person has answered.
//
// JUDGE-1. Each step can only refuse what the one before let pass, but for an answer: it admits exactly the question that was asked.
// JUDGE-2. A question that nobody can be asked is a denial.
// JUDGE-3. The digest of a session is empty exactly when no step can refuse anything.

/** Who may submit. */
export interface Signatures {
  /** Of the keys; empty: anyone may submit. */
  readonly digest: string;
  /** Throws UNAUTHORIZED when no known producer has signed exactly this entry. */
  check(question: AdmissionQuestion): Promise<void>;
}

/** The rules of the operator and of sessions. */
export interface Rules {
  /** Of the operator's rules; empty: there are none. It changes with every reload. */
  readonly digest: string;
  /** `spec`: with the rules and the approval policy of the session. `granted`: rules that a person has approved, which hold as the session's do. */
  decide(question: AdmissionQuestion, granted?: readonly PrefixRule[]): RuleDecision;
}

type RuleDecision =
  | { type: 'allowed'; outside?: true }
  | { type: 'asks'; question: ApprovalQuestion }
  | { type: 'forbidden'; reason: string };

/** What persons have answered. */
export interface Answers {
  /**
   * `granted`: exactly this question was approved, or a rule that `allows` it. `denied`: it was, or it cannot be asked, with the reason. Throws
   * APPROVAL_EXPIRED when it was asked and nobody answered.
   */
  find(
    question: AdmissionQuestion,
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

/** JUDGE-2 */
export const NOBODY_ANSWERS: Answers = {
  find: async () => ({ type: 'denied', reason: 'it needs an approval, and this host asks nobody' }),
};

/** For as long as no rules are read: whatever they could be asked about is. `rules`: files that the operator lists. */
export function askAboutCommands(rules: readonly string[]): Rules {
  return {
    digest: rules.join('\n'),
    decide: ({ payload }) =>
      payload.type === 'command'
        ? { type: 'asks', question: { reason: 'rules hold for this session' } }
        : { type: 'allowed' },
  };
}

export function createAdmission(steps: AdmissionSteps): Admission {
  return {
    forSession(spec: ResolvedSessionSpec, _ref: SessionRef): SessionAdmission {
      const own = digestOfSession(spec);
      return {
        get digest() {
          const parts = [steps.signatures.digest, steps.rules.digest, own];
          if (parts.every((part) => part === '')) return '';
          return sha256(parts.concat(JSON.stringify(spec.sandbox ?? null)).join('\n'));
        },
        judge: (question) => judge(question, steps),
      };
    },
  };
}

async function judge(question: AdmissionQuestion, { signatures, rules, answers }: AdmissionSteps): Promise<Verdict> {
  await signatures.check(question);
  const decision = rules.decide(question);
  switch (decision.type) {
    case 'forbidden':
      return { type: 'deny', reason: decision.reason };
    case 'allowed':
      return decision.outside ? { type: 'admit', outside: true } : { type: 'admit' };
    case 'asks':
      return toVerdict(
        decision.question,
        await answers.find(
          question,
          decision.question,
          (granted) => rules.decide(question, granted).type === 'allowed',
        ),
      );
  }
}

function toVerdict(asked: ApprovalQuestion, answer: Answer): Verdict {
  if (answer.type === 'open') return { type: 'hold', question: asked };
  if (answer.type === 'denied') {
    const { by } = answer;
    return { type: 'deny', reason: `${asked.reason}; ${answer.reason}`, ...(by === undefined ? {} : { by }) };
  }
  const { startBy } = answer;
  return {
    type: 'admit',
    ...(asked.outside ? { outside: true } : {}),
    ...(startBy === undefined ? {} : { startBy }),
  };
}

/** Empty for a session that asks for nothing that could refuse a command. */
function digestOfSession({ approval, execPolicy }: ResolvedSessionSpec): string {
  if (approval === undefined && execPolicy === undefined) return '';
  return sha256(JSON.stringify([approval ?? null, execPolicy ?? null]));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
