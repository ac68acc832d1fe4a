import type { AuditEvent, AuditHead } from '@shellfleet/protocol';

export interface Audit {
  /** Id of the state directory that holds the audit. Undefined when no audit is written. */
  readonly stateDirectoryId: string | undefined;
  /** Resolves when the event is on disk. Throws AUDIT_UNAVAILABLE: the reported action must not take effect then. */
  record(tenant: string, event: AuditEvent): Promise<void>;
  /** Resolves when all recorded events are on disk. Throws AUDIT_UNAVAILABLE when the last of them is not. */
  recorded(tenant: string): Promise<void>;
  /** Writes the event that `describe` returns, in order and within a second. A later record counts unwritten events. */
  note(tenant: string, describe: () => AuditEvent): void;
  /** Last record of each chain that this process has written to, by tenant. */
  heads(): ReadonlyMap<string, AuditHead>;
  close(): Promise<void>;
}

export const NO_AUDIT: Audit = {
  stateDirectoryId: undefined,
  record: async () => {},
  recorded: async () => {},
  note: () => {},
  heads: () => new Map(),
  close: async () => {},
};
