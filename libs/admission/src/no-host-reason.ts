import type { HostBeat } from '@shellfleet/protocol';
import { offeredClasses, type PlacementClass } from './placement.ts';

type Host = Pick<HostBeat, 'policies' | 'draining'>;

/** Those of the live hosts that can take a session of the class, now or when a slot is free. */
export function hostsFor<T extends Host>(name: PlacementClass, hosts: readonly T[]): T[] {
  return hosts.filter((host) => !host.draining && offeredClasses(host.policies).includes(name));
}

/** Why none of the live hosts can run a session of the class, in a sentence; undefined when one of them can. */
export function noHostReason(name: PlacementClass, hosts: readonly Host[]): string | undefined {
  if (hostsFor(name, hosts).length > 0) return undefined;
  if (hosts.length === 0) return 'No host is alive.';
  const offered = new Set(hosts.flatMap(({ policies }) => offeredClasses(policies)));
  if (offered.has(name)) return `Every live host that offers the policy '${name}' is draining.`;
  const others = [...offered].sort().map((other) => `'${other}'`);
  return `No live host offers the policy '${name}'; they offer ${others.join(', ') || 'none'}.`;
}
