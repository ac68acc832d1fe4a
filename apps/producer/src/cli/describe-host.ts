import type { HostInfo } from '@shellfleet/client';

/** Returns the state of a host: `up`, or `draining, cordoned`. */
export const stateOf = ({ state, cordoned }: HostInfo) => (cordoned ? `${state}, cordoned` : state);

/** Returns why a host takes no new session at present. Empty if it takes them. */
export function whyClosed({ gate, problems = [] }: HostInfo): string {
  // The gate has another reason only while the host has no problem: it opens others, or pauses.
  return problems.length > 0 ? problems.join(' ') : (gate?.reason ?? '');
}
