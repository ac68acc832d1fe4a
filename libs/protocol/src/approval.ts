import { z } from 'zod';
import type { Caller } from './caller.ts';
import type { PrefixRule } from './prefix-rule.ts';

/** Kinds of questions that are refused without being asked. Absent kinds are asked. */
export interface RejectedQuestions {
  /**
   * Questions about leaving the sandbox.
   * @default false
   */
  sandboxApproval?: boolean | undefined;
  /**
   * Questions that a `prompt` rule asks.
   * @default false
   */
  rules?: boolean | undefined;
  /**
   * Questions about more permissions. No command asks them yet, so `true` is refused.
   * @default false
   */
  requestPermissions?: boolean | undefined;
  /**
   * Questions that the person at an MCP client would answer there. They still wait, for an answer by other means.
   * @default false
   */
  mcpElicitations?: boolean | undefined;
}

/**
 * Which commands of a session ask a person before they run.
 * - `never`: none; a command that would ask is denied.
 * - `on-failure`: commands that a `prompt` rule names, and a second attempt after a denial by the sandbox.
 * - `on-request`: commands with `escalate`, and dangerous commands.
 * - `unless-trusted`: all commands except those that are known to be safe.
 * - `{ reject }`: as `on-request`, without the kinds of questions that `reject` names.
 */
export type ApprovalPolicy = 'never' | 'on-failure' | 'on-request' | 'unless-trusted' | { reject: RejectedQuestions };

/**
 * Which commands a person is asked about when no rule decides about them. It applies where `approval` allows questions.
 * - `unreadable`: scripts that no parser can read, and commands that `approval` itself names.
 * - `sandboxed`: every command of a `read-only` or `workspace-write` sandbox, even if it is known to be safe.
 */
export const ASK_BY_DEFAULT = ['unreadable', 'sandboxed'] as const;
export type AskByDefault = (typeof ASK_BY_DEFAULT)[number];

const flag = () => z.boolean('must be true or false').default(false);
/** Commands do not ask for more permissions yet. To reject such questions would have no effect. */
const unreadSchema = flag().refine(
  (set) => !set,
  'cannot be true: nothing asks for more permissions yet, so there is nothing to refuse. Leave it out',
);
const rejectedQuestionsSchema = z
  .strictObject(
    {
      sandboxApproval: flag().meta({ description: 'Questions about leaving the sandbox.' }),
      rules: flag().meta({ description: 'Questions that a `prompt` rule asks.' }),
      requestPermissions: unreadSchema.meta({
        description: 'Questions about more permissions. No command asks them yet, so `true` is refused.',
      }),
      mcpElicitations: flag().meta({
        description:
          'Questions that the person at an MCP client would answer there. They still wait, for an answer by other means.',
      }),
    },
    'must be an object of sandboxApproval, rules, requestPermissions, mcpElicitations',
  )
  .meta({
    id: 'RejectedQuestions',
    description: 'Kinds of questions that are refused without being asked. Absent kinds are asked.',
  });
export const approvalPolicySchema = z
  .union(
    [
      z.enum(['never', 'on-failure', 'on-request', 'unless-trusted']),
      z.strictObject(
        {
          reject: rejectedQuestionsSchema,
        },
        'must be { reject: { … } }',
      ),
    ],
    "must be 'never', 'on-failure', 'on-request', 'unless-trusted' or { reject: { … } }",
  )
  .meta({
    id: 'ApprovalPolicy',
    description:
      'Which commands of a session ask a person before they run.\n' +
      '- `never`: none; a command that would ask is denied.\n' +
      '- `on-failure`: commands that a `prompt` rule names, and a second attempt after a denial by the sandbox.\n' +
      '- `on-request`: commands with `escalate`, and dangerous commands.\n' +
      '- `unless-trusted`: all commands except those that are known to be safe.\n' +
      '- `{ reject }`: as `on-request`, without the kinds of questions that `reject` names.',
  });

/** Scope of an approval: this command, its session, or every command of the tenant that the amendment allows. */
export const APPROVAL_SCOPES = ['command', 'session', 'prefix'] as const;
export type ApprovalScope = (typeof APPROVAL_SCOPES)[number];

/**
 * State of a question. `pending`: it waits for an answer. `approved`, `denied`: a person has answered. `expired`:
 * nobody answered in time. `revoked`: the approval was revoked. `withdrawn`: its commands were cancelled, or their
 * sessions closed.
 */
export type ApprovalState = 'pending' | 'approved' | 'denied' | 'expired' | 'revoked' | 'withdrawn';

/** A question for a person, with its answer if there is one. */
export interface Approval {
  /** Id of the question, for `approve`, `deny` and `revoke`. */
  id: string;
  /** Whether the question is pending, or how it ended. */
  state: ApprovalState;
  /** Among the sessions that still ask, the one that asked first. Empty for a tool call. */
  sessionId: string;
  /** The command or tool call that asked. */
  commandId: string;
  /** Caller that submitted it, who cannot answer. Absent when its client named none. */
  submittedBy?: Caller | undefined;
  /** Name of the tool, if a tool call asks. */
  tool?: string | undefined;
  /** The whole script that will run, redacted. Untrusted text. */
  script: string;
  /** Why a person is asked. */
  reason: string;
  /** The submitter's reason for the command. Untrusted text. */
  justification?: string | undefined;
  /** The sandbox in which the command will run: policy, mode, network, image, in words. */
  place: string;
  /** Present when the command asks to run outside the sandbox of its session. */
  outside?: true | undefined;
  /** Working directory, without links. Absent when the question does not depend on it, or when it is not known yet. */
  cwd?: string | undefined;
  /** Why `cwd` is not known, redacted. An approval of scope `session` then answers this question alone. */
  cwdUnknown?: string | undefined;
  /** Names of the variables that the submitter sets, for the command or the session, secrets included. */
  env: string[];
  /** Size and SHA-256 (hex) of the stdin or of a tool call's arguments. Absent when there are none. */
  stdin?: { bytes: number; sha256: string } | undefined;
  /**
   * Contents that a file operation writes. `sha256` (hex) is the hash of a single file, or of a `sha256sum` list of
   * several files.
   */
  content?: { files: number; bytes: number; sha256: string } | undefined;
  /** What an approval of scope `session` allows. `under` is a keyed hash of the rules and the session it applies to. */
  covers?: { pattern: PrefixRule['pattern']; under: string } | undefined;
  /** The newest 100 files that were changed outside the commands since the question was asked, redacted, if any. */
  filesWritten?: string[] | undefined;
  /** Exit code and end of the output of a first attempt that the sandbox denied something, redacted. Untrusted text. */
  firstAttempt?: { exitCode: number | null; output: string } | undefined;
  /** The rule that the scope `prefix` would add. Absent when that scope is not offered. */
  amendment?: PrefixRule | undefined;
  /** Number of sessions that ask the same question. */
  count: number;
  /** Scope of the approval. Absent unless the question was approved. */
  scope?: ApprovalScope | undefined;
  /** Why the question was denied, in the person's words. */
  answer?: string | undefined;
  /** ISO 8601, by the clock of Redis. */
  askedAt: string;
  /** ISO 8601, by the clock of Redis. */
  expiresAt: string;
  /** Key or name of the person who answered. */
  answeredBy?: string | undefined;
}
