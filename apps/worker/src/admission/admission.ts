import type { Caller, EntryPayload, FileOperation, PrefixRule, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { Signature } from '@shellfleet/sealing';
import type { SessionRef } from '../sandbox/sandbox.ts';

export interface Admission {
  forSession(spec: ResolvedSessionSpec, ref: SessionRef): SessionAdmission;
}

export interface SessionAdmission {
  /** Digest of the rules that a verdict depends on. Empty if every entry is admitted without a decision. */
  readonly digest: string;
  /** Decides about an entry. Throws if that is impossible; the entry then ends with the thrown error. */
  decide(input: AdmissionInput): Promise<Verdict>;
  /** Records that a shell was opened for an admitted entry. */
  opened(): void;
  /** Returns why the startup commands may not run in a fresh shell. Undefined if they may. */
  refuseStartup(): string | undefined;
  /** Returns why the shutdown commands may not run. Undefined if they may. */
  refuseShutdown(): string | undefined;
  /** Returns whether a file operation must not follow links, since it is decided by its path. */
  takesRealPaths(operation: FileOperation): boolean;
  /** Returns why no terminal may be opened, as the end of a sentence. Undefined if terminals may be opened. */
  refuseTerminal(): string | undefined;
}

/** The decision about one entry. Its `reason` is redacted before it is stored. */
export type Verdict =
  /** The entry may start. If the answer that admits it can be revoked, only until `startBy` (ms by Redis' clock). */
  | { type: 'admit'; startBy?: number; outside?: true }
  | { type: 'hold'; question: ApprovalQuestion }
  /** The entry ends. `by` is absent when the rules denied it. */
  | { type: 'deny'; reason: string; by?: 'approver' };

/** An entry or a file operation, and everything else that its verdict can depend on. */
export interface AdmissionInput {
  tenant: string;
  session: string;
  generation: string;
  entryId: string;
  payload: EntryPayload;
  /** Signature of the submitter, where keys are configured. */
  signature?: Signature | undefined;
  /** Caller that submitted it, if its client named one. */
  submittedBy?: Caller | undefined;
  spec: ResolvedSessionSpec;
  /** Epoch of the shell that would run the entry. A fresh shell has a different one. */
  epoch: number;
  /** Whether a shell must be opened for the entry. That shell first runs the startup commands. */
  opens: boolean;
  attempt: Attempt;
  /** Asks the keeper for the directory of a command. Called only for questions to people: it costs a message. */
  directory?: (() => Promise<Directory>) | undefined;
  /** The wider sandbox. `refusal` tells why the entry cannot run there, as the end of a sentence. */
  wider: { refusal: string | undefined; sandbox: ResolvedSessionSpec['sandbox'] };
}

/** The attempt to decide about. The second has the redacted end (500 bytes at most) of the first attempt's output. */
type Attempt = { number: 1 } | { number: 2; exitCode: number | null; output: string };

/** Directory in which a command would run, or why it is not known beforehand. */
export type Directory = { path: string } | { unknown: string };

/** What a person is asked, not yet redacted. */
export interface ApprovalQuestion {
  /** Why a person is asked. */
  reason: string;
  /** The submitter's reason for the entry. */
  justification?: string;
  /** The rule that would allow such entries in future. */
  amendment?: PrefixRule;
  /** The rules that matched. An answer holds only while the same rules match. */
  matchedRules?: readonly unknown[];
  /** Present when the entry would run in the wider sandbox. */
  outside?: true;
  /**
   * What an approval of scope `session` would allow for files. `isCoveredBy` tells whether a pattern allows all of
   * that.
   */
  covers?: { pattern: PrefixRule['pattern']; isCoveredBy(pattern: PrefixRule['pattern']): boolean };
  /** Directory in which the command would run. Absent when nothing depends on it. */
  directory?: Directory;
}

export const ADMIT_EVERYTHING: Admission = {
  forSession: () => ({
    digest: '',
    decide: async () => ({ type: 'admit' }),
    opened() {},
    refuseStartup: () => undefined,
    refuseShutdown: () => undefined,
    takesRealPaths: () => false,
    refuseTerminal: () => undefined,
  }),
};
