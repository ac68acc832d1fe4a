import type { AuditEvent, AuditHead } from '@shellfleet/protocol';

/**
 * What this host writes down about entries and answers, one chain of records a tenant.
 *
 *     await audit.record(tenant, { type: 'answer', … }); // before the answer takes effect
 *     audit.note(tenant, () => ({ type: 'start', … })); // when there is time
 */
export interface Audit {
  /** The state folder in which it is. Undefined: nothing is written down. */
  readonly stateFolderId: string | undefined;
  /** Resolves when the event is on disk. Throws AUDIT_UNAVAILABLE: what it reports must not take effect then. */
  record(tenant: string, event: AuditEvent): Promise<void>;
  /** Resolves when everything that was recorded before is on disk. Throws AUDIT_UNAVAILABLE when the last of it is not. */
  recorded(tenant: string): Promise<void>;
  /**
   * Writes the event within a second, after those that were noted before it. `describe` is called then. An event that cannot be written is
   * counted, and the count is recorded later.
   */
  note(tenant: string, describe: () => AuditEvent): void;
  /** The last record of each chain that this process has written to, by tenant. */
  heads(): ReadonlyMap<string, AuditHead>;
  /** Writes what is noted. */
  close(): Promise<void>;
}

export const NO_AUDIT: Audit = {
  stateFolderId: undefined,
  record: async () => {},
  recorded: async () => {},
  note: () => {},
  heads: () => new Map(),
  close: async () => {},
};
