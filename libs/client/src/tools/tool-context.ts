import type { Caller } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import type { Feeds } from '../connection/feeds.ts';
import type { FleetContext } from '../connection/fleet-context.ts';
import type { ToolsQueue } from '../queue/tools-queue.ts';
import type { PendingReplies } from '../results/pending-replies.ts';

export interface ToolCallContext extends FleetContext {
  readonly id: string;
  readonly tenant: string;
  readonly place: string;
  readonly sealer: Sealer;
  readonly caller: Caller | undefined;
  readonly inboxId: string;
  readonly replies: PendingReplies;
  readonly feeds: Feeds;
  readonly tools: ToolsQueue;
  nextId(): string;
  openInbox(): Promise<void>;
}
