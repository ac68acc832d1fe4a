import type { Sealer } from '@shellfleet/sealing';
import type { Feeds } from '../connection/feeds.ts';
import type { FleetContext } from '../connection/fleet-context.ts';

/** The part of a view that is needed to list, watch and answer questions. */
export interface ApprovalsContext extends FleetContext {
  readonly tenant: string;
  readonly sealer: Sealer;
  readonly feeds: Feeds;
}
