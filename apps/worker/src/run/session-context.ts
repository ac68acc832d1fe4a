import type { HostMailbox, Owner } from '@shellfleet/mailbox';
import type { FileOperation, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import type { Logger } from 'pino';
import type { Audit } from '../audit/audit.ts';
import type { RefusedEgress, SessionEgress } from '../egress/session-egress.ts';
import type { HostLog } from '../host-log/host-log.ts';
import type { Journal } from '../journal/journal.ts';
import type { RedisLosses } from '../journal/redis-losses.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { Outside } from './outside.ts';
import type { RunningEntries } from './running-entries.ts';

/** Everything of a session that stays the same while this host owns it. */
export interface SessionContext {
  readonly mailbox: HostMailbox;
  /** The owner as which `mailbox` calls. */
  readonly owner: Owner;
  /** Names this life of the session id. */
  readonly generation: string;
  readonly spec: ResolvedSessionSpec;
  readonly sealer: Sealer;
  readonly redaction: SessionRedaction;
  readonly hostLog: HostLog;
  /** The entries that run on this host, in all sessions. */
  readonly hostEntries: RunningEntries;
  /** The entries that this host began, also before Redis lost its record of them. */
  readonly journal: Journal;
  readonly redisLosses: RedisLosses;
  readonly audit: Audit;
  /** Entries that this host stopped because nothing of them could be stored. Nobody asked for that, so they end as lost. */
  readonly stoppedUnstored: Set<string>;
  /** Whether the path of a file operation was judged, so that it must not lead through a link. */
  takesRealPaths(operation: FileOperation): boolean;
  /** How long the reader that is attached to a command may read nothing while the command waits for it. */
  readonly readerStallMs: number;
  /** The proxy of its network, where that is limited. */
  readonly egress?: SessionEgress | undefined;
  /** To be called with what a proxy of it refuses. */
  onEgressRefused(refused: RefusedEgress): void;
  readonly outside: Outside;
  readonly logger: Logger;
  /** Aborts when this host lost the session: it must not write to it any more. */
  readonly signal: AbortSignal;
}
