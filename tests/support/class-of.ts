import { placementClass } from '@shellfleet/placement';
import { createSealer } from '@shellfleet/sealing';

/** What a spec that a producer with this key has sealed needs to be opened. */
export const sealedWithKey = (sealKey: string): string => `1.${createSealer([sealKey]).keyIds[0]}`;

/** The placement class of the sessions of a producer with this key. */
export const classOf = (policy: 'docker' | 'host', sealKey: string): string =>
  placementClass({ policy, sealedWith: sealedWithKey(sealKey) });
