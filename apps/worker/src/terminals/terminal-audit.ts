import type { SessionKeys, WireTerminalEnd } from '@shellfleet/protocol';
import type { Audit } from '../audit/audit.ts';

export interface TerminalAudit {
  started(terminal: string, producer: string | undefined): void;
  ended(terminal: string, end: WireTerminalEnd): void;
  /** Resolves when the denial and its reason are on disk. */
  denied(terminal: string, reason: string): Promise<void>;
  /** Resolves when the refusal of an unsigned request is on disk. */
  refused(): Promise<void>;
}

export function auditTerminals(audit: Audit, { tenant, session }: SessionKeys, generation: string): TerminalAudit {
  const about = { session, generation };
  return {
    started: (terminal, producer) =>
      audit.note(tenant, () => ({
        ...{ type: 'terminal-start', ...about, terminal },
        ...(producer === undefined ? {} : { producer }),
      })),
    ended: (terminal, { reason }) => audit.note(tenant, () => ({ type: 'terminal-end', ...about, terminal, reason })),
    denied: (terminal, reason) =>
      audit.record(tenant, { type: 'decision', ...about, entry: terminal, decision: 'deny', reason, digest: '' }),
    refused: () => audit.recorded(tenant),
  };
}
