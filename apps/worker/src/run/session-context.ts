import type { HostMailbox, Owner } from '@shellfleet/mailbox';
import type { FileOperation, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { RefusedEgress, SessionEgress } from '../egress/session-egress.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { SessionShell } from '../shell/session-shell.ts';
import type { SessionTraces } from '../tracing/session-traces.ts';
import type { Delegation } from './delegation.ts';
import type { SessionHost } from './host-services.ts';
import type { SessionTimes } from './session-times.ts';
import type { WiderSandbox } from './wider-sandbox.ts';

/** What stays the same while this host owns a session. The logger redacts. */
export interface SessionContext extends SessionHost {
  readonly mailbox: HostMailbox;
  /** Owner in whose name the calls of `mailbox` are made. */
  readonly owner: Owner;
  /** Id of this generation of the session. */
  readonly generation: string;
  readonly spec: ResolvedSessionSpec;
  readonly redaction: SessionRedaction;
  readonly times: SessionTimes;
  /** Spans of the session, if this host traces. */
  readonly traces?: SessionTraces | undefined;
  /** Entries that this host stopped because it could not store their output. They end as lost, not cancelled. */
  readonly stoppedUnstored: Set<string>;
  /** Returns whether the session may start entries now: it is served, and its lease is held (SESSION-2). */
  mayTakeNext(): boolean;
  readonly delegation: Delegation;
  /** Returns whether the path of a file operation was decided about, so that no link may be followed. */
  takesRealPaths(operation: FileOperation): boolean;
  /** Proxy of the session's network, if that is limited. */
  readonly egress?: SessionEgress | undefined;
  /** Receives each request that a proxy of the session refuses. */
  onEgressRefused(refused: RefusedEgress): void;
  readonly wider: WiderSandbox;
  readonly shell: SessionShell;
  /** Aborts when this host lost the session and must not write to it any more. */
  readonly signal: AbortSignal;
}
