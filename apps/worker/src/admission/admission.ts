import type { EntryPayload, FileOperation, PrefixRule, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { Signature } from '@shellfleet/sealing';
import type { SessionRef } from '../sandbox/sandbox.ts';

/** Decides what a host admits, by the rules of its operator and by what each session asks for itself. */
export interface Admission {
  forSession(spec: ResolvedSessionSpec, ref: SessionRef): SessionAdmission;
}

export interface SessionAdmission {
  /**
   * Digest of everything but the entry that a verdict depends on. It changes when the operator's rules do. An entry
   * that was cleared under it is not judged again. When it is empty, every entry is admitted without being judged.
   */
  readonly digest: string;
  /** Throws the error with which an entry ends that cannot be judged. */
  judge(input: AdmissionInput): Promise<Verdict>;
  /** Records that a shell was opened for an entry that was admitted. */
  opened(): void;
  /** Returns why the startup commands may not run in a fresh shell, or undefined when they may. */
  refuseStartup(): string | undefined;
  /** Returns why the shutdown commands may not run, or undefined when they may. */
  refuseShutdown(): string | undefined;
  /** Tells whether a file operation, which is judged by its path, must not be done through a link. */
  takesRealPaths(operation: FileOperation): boolean;
  /** Returns why no terminal may be opened, as the end of a sentence, or undefined when it may. */
  refuseTerminal(): string | undefined;
}

/** The decision about one entry. `reason` is stored in the session's stream or in the Result, redacted. */
export type Verdict =
  /**
   * The entry may start. `startBy` (ms, by the clock of Redis) is there when an answer allows it, which may be revoked:
   * after that time the entry is judged again. `outside` means in the wider sandbox.
   */
  | { type: 'admit'; startBy?: number; outside?: true }
  | { type: 'hold'; question: ApprovalQuestion }
  /** The entry ends. `by` is there when a person denied it, and absent when the rules did. */
  | { type: 'deny'; reason: string; by?: 'approver' };

/** An entry or a file operation, and everything about it that a verdict can depend on. */
export interface AdmissionInput {
  tenant: string;
  session: string;
  /** The generation of the session. */
  generation: string;
  entryId: string;
  payload: EntryPayload;
  /** Signature of its submitter, where keys are configured. */
  signature?: Signature | undefined;
  spec: ResolvedSessionSpec;
  /** Epoch of the shell that would run the entry. A fresh shell has a different one. */
  epoch: number;
  /** Whether a shell is opened for the entry, which runs the startup commands first. */
  opens: boolean;
  attempt: Attempt;
  /**
   * Asks the keeper in which directory a command would run. It takes a message, so it is called only when there is
   * something to ask a person. Absent for what is no command.
   */
  directory?: (() => Promise<Directory>) | undefined;
  /** The wider sandbox, and why the entry cannot run there: the end of a sentence, or undefined when it can. */
  outside: { refusal: string | undefined; sandbox: ResolvedSessionSpec['sandbox'] };
}

/**
 * The attempt that is judged. There is a second one when the sandbox denied the first something; then `exitCode` and
 * `output` are those of the first, the output being its last 500 bytes at most, redacted.
 */
type Attempt = { number: 1 } | { number: 2; exitCode: number | null; output: string };

/** The directory in which a command would run, or why it is not known before the command runs. */
export type Directory = { path: string } | { unknown: string };

/** What a person is asked. Nothing in it is redacted yet. */
export interface ApprovalQuestion {
  /** Why a person is asked. */
  reason: string;
  /** What the submitter says about the entry. */
  justification?: string;
  /** The rule that would allow such entries from then on. */
  amendment?: PrefixRule;
  /** The rules that matched. An answer holds only while the same ones match. */
  matchedRules?: readonly unknown[];
  /** Present when the entry would run outside its sandbox. */
  outside?: true;
  /**
   * What an approval of scope `session` would allow about files. `isCoveredBy` tells whether an approval of a pattern
   * is about everything that asks here.
   */
  covers?: { pattern: PrefixRule['pattern']; isCoveredBy(pattern: PrefixRule['pattern']): boolean };
  /** The directory in which a command would run. Absent when nothing depends on one. */
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
