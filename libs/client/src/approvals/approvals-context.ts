import type { Caller } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import type { Feeds } from '../connection/feeds.ts';
import type { FleetContext } from '../connection/fleet-context.ts';

export interface ApprovalsContext extends FleetContext {
  readonly tenant: string;
  readonly sealer: Sealer;
  readonly caller: Caller | undefined;
  readonly feeds: Feeds;
}
