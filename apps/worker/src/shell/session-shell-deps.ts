import type { PolicyName, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { SessionEgress } from '../egress/session-egress.ts';
import type { TenantUses } from '../host/tenant-use.ts';
import type { Logger } from '../log/logger.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { Sandbox, Sandboxes, SessionRef } from '../sandbox/sandbox.ts';
import type { SessionTraces } from '../tracing/session-traces.ts';
import type { WarmPools } from './pool/warm-pools.ts';
import type { ShellEvents } from './shell.ts';
import type { ShellTerminals } from './shell-terminals.ts';

export interface SessionShellDeps {
  ref: SessionRef;
  spec: ResolvedSessionSpec;
  redaction: SessionRedaction;
  fence: number;
  sandboxes: Pick<Sandboxes, 'create' | 'pull'>;
  uses: Pick<TenantUses, 'begin' | 'end'>;
  pools: Pick<WarmPools, 'take' | 'tend'>;
  /** Proxy of the session's network, if that is limited. */
  egress?: SessionEgress | undefined;
  /** Limits how many sandboxes this host starts at a time. Too many delay each other. */
  limitOpening<T>(policy: PolicyName, open: () => Promise<T>): Promise<T>;
  /** Traces the steps of an opening, if this host traces. */
  traces?: Pick<SessionTraces, 'step'> | undefined;
  logger: Logger;
  /** Keeps a sandbox for a post-mortem, and returns whether it could. Without it, the sandbox is removed. */
  keep?(sandbox: Sandbox, reason: string): Promise<boolean>;
  onLate: ShellEvents['onLate'];
  /** Reports that the sandbox is given up, so no more late output comes from it. */
  onAbandoned(): void;
  /** Reports that the shell ended while no entry of the mailbox ran. */
  onGone(): void;
  /** Reports a new connection or, without terminals, that the sandbox is gone. */
  onConnected(terminals: ShellTerminals | undefined): Promise<void>;
  /** Set for a sandbox that any worker can reach, which may be the next owner's. */
  movable?: MovableDeps;
}

interface MovableDeps {
  /** Aborts when this host has lost the session, or leaves it as it is. */
  lost: AbortSignal;
  /** Reports that another worker has claimed the keeper under a higher fence. */
  onFencedOff(): void;
  /** Waits until the lease is held, so that the sandbox may be removed. Resolves to false when it is lost. */
  mayRemove(): Promise<boolean>;
}
