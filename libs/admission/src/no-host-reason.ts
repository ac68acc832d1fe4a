import type { HostBeat } from '@shellfleet/protocol';
import { offeredClasses, type PlacementClass } from './placement.ts';

type Host = Pick<HostBeat, 'policies' | 'draining'>;

/** The live hosts that may take a session of the class, now or when they have a free slot. */
export function hostsFor<T extends Host>(name: PlacementClass, hosts: readonly T[]): T[] {
  return hosts.filter((host) => !host.draining && offeredClasses(host.policies).includes(name));
}

/** Why none of the live hosts can run a session of the class, in a sentence; undefined when one of them can. */
export function noHostReason(name: PlacementClass, hosts: readonly Host[]): string | undefined {
  if (hostsFor(name, hosts).length > 0) return undefined;
  if (hosts.length === 0) return 'No host is alive.';
  return hosts.some(({ policies }) => offeredClasses(policies).includes(name))
    ? `Every live host that offers the policy '${name}' is draining.`
    : `No live host offers the policy '${name}'.`;
}
