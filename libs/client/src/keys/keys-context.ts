import type { Sealer } from '@shellfleet/sealing';
import type { FleetContext } from '../connection/fleet-context.ts';

export interface KeysContext extends FleetContext {
  readonly tenant: string;
  readonly sealer: Sealer;
}
