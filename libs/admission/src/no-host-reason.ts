import type { HostBeat } from '@shellfleet/protocol';
import { type Abilities, isOffered, type PlacementClass, parseClass } from './placement.ts';
import { notAllowedReason } from './wants.ts';

type Host = Abilities & Pick<HostBeat, 'draining' | 'problems'>;

/** Those of the live hosts that can take a session of the class, now or when a slot is free. */
export function hostsFor<T extends Host>(name: PlacementClass, hosts: readonly T[]): T[] {
  const takesSessions = (host: T) => !host.draining && host.problems.length === 0;
  return hosts.filter((host) => takesSessions(host) && isOffered(name, host));
}

/** Why none of the live hosts can run a session of the class, in a sentence; undefined when one of them can. */
export function noHostReason(name: PlacementClass, hosts: readonly Host[]): string | undefined {
  if (hostsFor(name, hosts).length > 0) return undefined;
  if (hosts.length === 0)
    return 'No host of this fleet is up. Start one: `shellfleet up`, or `shellfleet worker` on another machine.';
  const { policy = name, wants = [], keyId = '', schema = 0 } = parseClass(name) ?? {};
  const offering = hosts.filter((host) => isOffered(name, host));
  const problem = offering.find(({ draining }) => !draining)?.problems[0];
  if (problem !== undefined) return `No live host that offers the policy '${policy}' takes sessions now: ${problem}`;
  if (offering.length > 0) return `Every live host that offers the policy '${policy}' is draining.`;
  const withPolicy = hosts.filter(({ policies }) => policies.includes(policy));
  if (withPolicy.length === 0) {
    const others = [...new Set(hosts.flatMap(({ policies }) => policies))].sort().map((other) => `'${other}'`);
    return `No live host offers the policy '${policy}'; they offer ${others.join(', ') || 'none'}.`;
  }
  const notAllowed = notAllowedReason(policy, wants, withPolicy);
  if (notAllowed !== undefined) return notAllowed;
  if (!withPolicy.some(({ sealKeys }) => sealKeys.includes(keyId))) {
    return `No live host that offers the policy '${policy}' has the seal key ${keyId || '(none)'} of the session.`;
  }
  return `No live host that has the session's policy and seal key understands its spec (schema ${schema}): it needs a newer version of Shellfleet.`;
}
