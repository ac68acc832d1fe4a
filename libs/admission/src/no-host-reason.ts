import type { HostBeat } from '@shellfleet/protocol';
import { offeredClasses, type PlacementClass } from './placement.ts';

type Host = Pick<HostBeat, 'policies' | 'draining' | 'problems'>;

/** Those of the live hosts that can take a session of the class, now or when a slot is free. */
export function hostsFor<T extends Host>(name: PlacementClass, hosts: readonly T[]): T[] {
  const takesSessions = (host: T) => !host.draining && host.problems.length === 0;
  return hosts.filter((host) => takesSessions(host) && offeredClasses(host.policies).includes(name));
}

/** Why none of the live hosts can run a session of the class, in a sentence; undefined when one of them can. */
export function noHostReason(name: PlacementClass, hosts: readonly Host[]): string | undefined {
  if (hostsFor(name, hosts).length > 0) return undefined;
  if (hosts.length === 0) return 'No host is alive.';
  const offering = hosts.filter(({ policies }) => offeredClasses(policies).includes(name));
  const problem = offering.find(({ draining }) => !draining)?.problems[0];
  if (problem !== undefined) return `No live host that offers the policy '${name}' takes sessions now: ${problem}`;
  if (offering.length > 0) return `Every live host that offers the policy '${name}' is draining.`;
  const offered = new Set(hosts.flatMap(({ policies }) => offeredClasses(policies)));
  const others = [...offered].sort().map((other) => `'${other}'`);
  return `No live host offers the policy '${name}'; they offer ${others.join(', ') || 'none'}.`;
}
