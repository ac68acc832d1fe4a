import type { EntryPayload, FileOperation, PrefixRule, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { Signature } from '@shellfleet/sealing';
import type { SessionRef } from '../sandbox/sandbox.ts';

/** What a host admits: the rules of its operator, and what each session asks for itself. */
export interface Admission {
  forSession(spec: ResolvedSessionSpec, ref: SessionRef): SessionAdmission;
}

export interface SessionAdmission {
  /**
   * Digest of everything that a verdict depends on beside the entry: an entry that was cleared under it is not judged again. It changes when
   * the operator's rules do. Empty: every entry is admitted, and none is judged.
   */
  readonly digest: string;
  /** Throws the error with which an entry ends that cannot be judged. */
  judge(question: AdmissionQuestion): Promise<Verdict>;
  /** A shell was opened for an entry that was admitted. */
  opened(): void;
  /** Why the startup commands may not run in a fresh shell; undefined when they may. */
  refuseStartup(): string | undefined;
  /** Why the shutdown commands may not run; undefined when they may. */
  refuseShutdown(): string | undefined;
  /** Whether a file operation is done at its path alone, and never through a link: it is judged by its path. */
  takesRealPaths(operation: FileOperation): boolean;
  /** Why no terminal may be opened, the end of a sentence; undefined when it may. */
  refuseTerminal(): string | undefined;
}

/** The decision about one entry. `reason` is stored in the session's stream or in the Result, redacted. */
export type Verdict =
  /**
   * `startBy`: an answer allows it, which may be revoked; after this time (ms, by the clock of Redis) it is judged again instead of started.
   * `outside`: it runs in the wider sandbox.
   */
  | { type: 'admit'; startBy?: number; outside?: true }
  | { type: 'hold'; question: ApprovalQuestion }
  /** `by`: a person denied it. Else the rules did. */
  | { type: 'deny'; reason: string; by?: 'approver' };

/** An entry, and everything about it that a verdict can depend on. */
export interface AdmissionQuestion {
  tenant: string;
  session: string;
  /** The life of the session. */
  generation: string;
  entryId: string;
  payload: EntryPayload;
  /** Who signed it, where keys are configured. */
  signature?: Signature | undefined;
  spec: ResolvedSessionSpec;
  /** Of the shell that would run it: a fresh one has another. */
  epoch: number;
  /** A shell is opened for it, which runs the startup commands first. */
  opens: boolean;
  attempt: Attempt;
  /** Asks where it would run. Only when there is something to ask a person: it takes a message to the keeper. Of commands alone. */
  directory?: (() => Promise<Directory>) | undefined;
  /** Why it cannot leave its sandbox, the end of a sentence, or undefined; and the wider sandbox in which it would run. */
  outside: { refusal: string | undefined; sandbox: ResolvedSessionSpec['sandbox'] };
}

/** `2`: the sandbox denied the first attempt something. `output`: the end of what that attempt printed, at most 500 bytes, redacted. */
type Attempt = { number: 1 } | { number: 2; exitCode: number | null; output: string };

/** The directory in which a command would run. `unknown`: which one it is cannot be told before it runs; in words. */
export type Directory = { path: string } | { unknown: string };

/** What a person is asked. Nothing in it is redacted yet. */
export interface ApprovalQuestion {
  /** Why it is asked. */
  reason: string;
  /** What its submitter says about it. */
  justification?: string;
  /** The rule that would allow it from then on. */
  amendment?: PrefixRule;
  /** The rules that matched: an answer holds only while the same do. */
  matchedRules?: readonly unknown[];
  /** It would run outside the sandbox. */
  outside?: true;
  /** For file operations: what an approval of scope `session` allows, and whether one that allows a pattern is about everything that asks here. */
  covers?: { pattern: PrefixRule['pattern']; isCoveredBy(pattern: PrefixRule['pattern']): boolean };
  /** Absent: nothing of it depends on a directory. */
  directory?: Directory;
}

export const ADMIT_EVERYTHING: Admission = {
  forSession: () => ({
    digest: '',
    judge: async () => ({ type: 'admit' }),
    opened() {},
    refuseStartup: () => undefined,
    refuseShutdown: () => undefined,
    takesRealPaths: () => false,
    refuseTerminal: () => undefined,
  }),
};
