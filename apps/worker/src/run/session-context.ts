import type { HostMailbox, Owner } from '@shellfleet/mailbox';
import type { FileOperation, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { RefusedEgress, SessionEgress } from '../egress/session-egress.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { SessionShell } from '../shell/session-shell.ts';
import type { Delegation } from './delegation.ts';
import type { SessionHost } from './host-services.ts';
import type { Outside } from './outside.ts';

/** Everything of a session that stays the same while this host owns it, and its host. The logger redacts. */
export interface SessionContext extends SessionHost {
  readonly mailbox: HostMailbox;
  /** The owner as which `mailbox` calls. */
  readonly owner: Owner;
  /** Names this generation of the session id. */
  readonly generation: string;
  readonly spec: ResolvedSessionSpec;
  readonly redaction: SessionRedaction;
  /** Entries that this host stopped because it could store nothing of them. Nobody asked for that: they end as lost. */
  readonly stoppedUnstored: Set<string>;
  /** Returns whether the session may start entries now: it is served, and its lease is held (SESSION-2). */
  mayTakeNext(): boolean;
  readonly delegation: Delegation;
  /** Returns whether the path of a file operation was judged, so that it must not lead through a link. */
  takesRealPaths(operation: FileOperation): boolean;
  /** The proxy of its network, where that is limited. */
  readonly egress?: SessionEgress | undefined;
  /** Is to be called with each request that a proxy of the session refuses. */
  onEgressRefused(refused: RefusedEgress): void;
  readonly outside: Outside;
  readonly shell: SessionShell;
  /** Aborts when this host lost the session: it must not write to it any more. */
  readonly signal: AbortSignal;
}
