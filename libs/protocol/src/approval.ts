import { z } from 'zod';
import type { PrefixRule } from './prefix-rule.ts';

/** Which kinds of questions are refused without being asked. What is absent is asked. */
export interface RejectedQuestions {
  /** Questions about leaving the sandbox. */
  sandboxApproval?: boolean | undefined;
  /** Questions that a `prompt` rule asks. */
  rules?: boolean | undefined;
  /**
   * Questions about more permissions. Nothing asks them yet, so `true` is refused.
   * @default false
   */
  requestPermissions?: boolean | undefined;
  /**
   * Questions that a tool asks. Nothing passes them on yet, so `true` is refused.
   * @default false
   */
  mcpElicitations?: boolean | undefined;
}

/**
 * Which commands of a session ask a person before they run.
 * - `never`: none; what would ask is denied.
 * - `on-failure`: those that a `prompt` rule names, and a second attempt after a denial by the sandbox.
 * - `on-request`: those that ask for it (`escalate`), and dangerous ones.
 * - `unless-trusted`: all but those that are known to be safe.
 * - `{ reject }`: as `on-request`, without the questions that it names.
 */
export type ApprovalPolicy = 'never' | 'on-failure' | 'on-request' | 'unless-trusted' | { reject: RejectedQuestions };

/**
 * Which commands are asked about when no rule decides about them, where `approval` lets a person be asked.
 * - `unreadable`: scripts that no parser can read, and what `approval` itself names.
 * - `sandboxed`: every command of a `read-only` or `workspace-write` sandbox, also one that is known to be safe.
 */
export const ASK_BY_DEFAULT = ['unreadable', 'sandboxed'] as const;
export type AskByDefault = (typeof ASK_BY_DEFAULT)[number];

const flag = () => z.boolean('must be true or false').default(false);
/** A kind of question that nothing asks yet: to refuse it would promise something that is not there. */
const unread = (kind: string) =>
  flag().refine((set) => !set, `cannot be true: nothing asks ${kind} yet, so there is nothing to refuse. Leave it out`);
export const approvalPolicySchema = z.union(
  [
    z.enum(['never', 'on-failure', 'on-request', 'unless-trusted']),
    z.strictObject(
      {
        reject: z.strictObject(
          {
            ...{ sandboxApproval: flag(), rules: flag() },
            requestPermissions: unread('for more permissions'),
            mcpElicitations: unread("a tool's questions"),
          },
          'must be an object of sandboxApproval, rules, requestPermissions, mcpElicitations',
        ),
      },
      'must be { reject: { … } }',
    ),
  ],
  "must be 'never', 'on-failure', 'on-request', 'unless-trusted' or { reject: { … } }",
);

/** How far an approval reaches: this command, its session, or every command of the tenant that the amendment allows. */
export const APPROVAL_SCOPES = ['command', 'session', 'prefix'] as const;
export type ApprovalScope = (typeof APPROVAL_SCOPES)[number];

/**
 * The state of a question. `pending`: it waits for an answer. `approved`, `denied`: a person has answered. `expired`:
 * nobody answered in time. `revoked`: its approval was taken back. `withdrawn`: the commands that asked it were
 * cancelled, or their sessions closed.
 */
export type ApprovalState = 'pending' | 'approved' | 'denied' | 'expired' | 'revoked' | 'withdrawn';

/** A question that waits for a person, or that was answered. */
export interface Approval {
  /** Id of the question, for `approve`, `deny` and `revoke`. */
  id: string;
  /** Whether the question waits for an answer, or how it ended. */
  state: ApprovalState;
  /** The session that asked first, of those that still ask. Empty for a tool call. */
  sessionId: string;
  /** The command of that session that asked, or the tool call. */
  commandId: string;
  /** Name of the tool, of a question about a tool call. */
  tool?: string | undefined;
  /** What will run, whole, redacted. Untrusted text. */
  script: string;
  /** Why a person is asked. */
  reason: string;
  /** What the submitter says about the command. Untrusted text. */
  justification?: string | undefined;
  /** The sandbox in which it will run: policy, mode, network, image, in words. */
  place: string;
  /** Present when the command asks to run outside the sandbox of its session. */
  outside?: true | undefined;
  /**
   * The directory in which it will run, without links. Absent when nothing depends on it, or when it is not known yet.
   */
  cwd?: string | undefined;
  /** Why the directory is not known, redacted. Then an approval of scope `session` answers this question alone. */
  cwdUnknown?: string | undefined;
  /** Names of the variables that the submitter sets: those of the command, of the session and of its secrets. */
  env: string[];
  /** Size and SHA-256 (hex) of the stdin, or of the arguments of a tool call. Absent when there are none. */
  stdin?: { bytes: number; sha256: string } | undefined;
  /**
   * What a file operation writes: number of files, size of their contents, and SHA-256 (hex) of the one file, or of the
   * list of several files as `sha256sum` prints it. Exactly these bytes are written. Absent when it writes none.
   */
  content?: { files: number; bytes: number; sha256: string } | undefined;
  /**
   * What an approval with scope `session` would allow the session of a file operation from then on, such as
   * `files.write` in a folder. `under` is a keyed hash of the rules and the session for which that holds.
   */
  covers?: { pattern: PrefixRule['pattern']; under: string } | undefined;
  /**
   * Files that were changed beside the commands since the question was asked: the command may read them. The newest
   * 100, redacted. Absent when there are none.
   */
  filesWritten?: string[] | undefined;
  /**
   * The first attempt, to which the sandbox denied something: its exit code and the end of its output, redacted.
   * Untrusted text.
   */
  firstAttempt?: { exitCode: number | null; output: string } | undefined;
  /** What `prefix` would allow from then on. Absent when that scope is not offered. */
  amendment?: PrefixRule | undefined;
  /** Sessions that ask the same. */
  count: number;
  /** How far the approval reaches. Absent unless the question was approved. */
  scope?: ApprovalScope | undefined;
  /** Why the question was denied, in the words of the person who answered. */
  answer?: string | undefined;
  /** ISO 8601, by the clock of Redis. */
  askedAt: string;
  /** ISO 8601, by the clock of Redis. */
  expiresAt: string;
  /** The key or the name of who answered. */
  answeredBy?: string | undefined;
}
