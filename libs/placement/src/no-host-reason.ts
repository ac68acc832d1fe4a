import type { FieldIssue, HostBeat } from '@shellfleet/protocol';
import { type Abilities, isOffered, type PlacementClass, parseClass } from './placement.ts';

export const NO_LIVE_HOST =
  'No host of this fleet is up. Start one: `shellfleet up`, or `shellfleet worker` on another machine.';

type Host = Abilities & Pick<HostBeat, 'draining' | 'problems'>;

/** Returns the parts of a session's spec that a host refuses. */
export type Refusals<T> = (host: T) => readonly FieldIssue[];

/** Returns the live hosts that can take a session of the class, now or when a slot is free. */
export function hostsFor<T extends Host>(
  name: PlacementClass,
  hosts: readonly T[],
  refusals: Refusals<T> = () => [],
): T[] {
  return hosts.filter((host) => takesSessions(host) && isOffered(name, host) && refusals(host).length === 0);
}

const takesSessions = (host: Host) => !host.draining && host.problems.length === 0;

/** Returns a sentence that says why no live host can run a session of the class, or undefined when one can. */
export function noHostReason<T extends Host>(
  name: PlacementClass,
  hosts: readonly T[],
  refusals: Refusals<T> = () => [],
): string | undefined {
  if (hostsFor(name, hosts, refusals).length > 0) return undefined;
  if (hosts.length === 0) return NO_LIVE_HOST;
  const { policy = name, keyId = '', schema = 0 } = parseClass(name) ?? {};
  const offering = hosts.filter((host) => isOffered(name, host));
  const able = offering.filter((host) => refusals(host).length === 0);
  if (offering.length > 0 && able.length === 0) return refusedByAll(policy, offering.map(refusals));
  const problem = able.find(({ draining }) => !draining)?.problems[0];
  if (problem !== undefined) return `No live host that offers the policy '${policy}' takes sessions now: ${problem}`;
  if (able.length > 0) return `Every live host that offers the policy '${policy}' is draining.`;
  const withPolicy = hosts.filter(({ policies }) => policies.includes(policy));
  if (withPolicy.length === 0) {
    const others = [...new Set(hosts.flatMap(({ policies }) => policies))].sort().map((other) => `'${other}'`);
    return `No live host offers the policy '${policy}'; they offer ${others.join(', ') || 'none'}. The operator of a host lists what it offers in SHELLFLEET_POLICIES.`;
  }
  if (!withPolicy.some(({ sealKeys }) => sealKeys.includes(keyId))) {
    return `No live host that offers the policy '${policy}' has the seal key ${keyId || '(none)'} of the session.`;
  }
  return `No live host that has the session's policy and seal key understands its spec (schema ${schema}): it needs a newer version of Shellfleet.`;
}

/**
 * Names the fields that are refused by the host with the fewest refusals. Among equal hosts the choice is always the
 * same.
 */
function refusedByAll(policy: string, refused: readonly (readonly FieldIssue[])[]): string {
  const [list] = refused
    .map((issues) => ({
      count: issues.length,
      text: issues.map(({ path, message }) => `${path}: ${message}`).join('; '),
    }))
    .sort((a, b) => a.count - b.count || (a.text < b.text ? -1 : 1))
    .map(({ text }) => text);
  const [whom, verb] =
    refused.length === 1
      ? ['The one live host that offers', 'does not run']
      : [`None of the ${refused.length} live hosts that offer`, 'runs'];
  return `${whom} the policy '${policy}' ${verb} what the session asks for. ${list}. Ask for less, or have the operator of a host allow it.`;
}
