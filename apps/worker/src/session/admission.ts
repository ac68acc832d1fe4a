import type { EntryPayload } from '@shellfleet/protocol';

/** The decision about one entry. `reason` is stored in the session's stream or in the Result, redacted. */
export type Verdict = { type: 'admit' } | { type: 'hold'; reason: string } | { type: 'deny'; reason: string };

/** The rules by which a host admits entries. */
export interface Admission {
  /** Digest of the rules: an entry that was cleared under it is not judged again. Empty: everything is admitted. */
  readonly digest: string;
  judge(question: AdmissionQuestion): Verdict | Promise<Verdict>;
}

export interface AdmissionQuestion {
  tenant: string;
  session: string;
  entryId: string;
  payload: EntryPayload;
}

export const ADMIT_EVERYTHING: Admission = { digest: '', judge: () => ({ type: 'admit' }) };
