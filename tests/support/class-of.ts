import { placementClass } from '@shellfleet/placement';
import { createSealer } from '@shellfleet/sealing';

/** Returns the schema version and key id that a host needs to open a spec sealed with this key. */
export const sealedWithKey = (sealKey: string): string => `1.${createSealer([sealKey]).keyIds[0]}`;

/** Returns the placement class of the sessions of a producer with this key. */
export const classOf = (policy: 'docker' | 'host', sealKey: string): string =>
  placementClass({ policy, sealedWith: sealedWithKey(sealKey) });
