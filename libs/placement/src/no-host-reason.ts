import { type FieldIssue, type HostBeat, labelsText } from '@shellfleet/protocol';
import {
  type Abilities,
  canOpen,
  isOffered,
  missingLabels,
  type ParsedClass,
  type PlacementClass,
  parseClass,
  unlistedSandbox,
} from './placement.ts';

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
  const parsed = parseClass(name) ?? { ...UNKNOWN, policy: name };
  const { policy } = parsed;
  const withPolicy = hosts.filter(({ policies }) => policies.includes(policy));
  if (withPolicy.length === 0) return noPolicy(policy, hosts);
  const opening = withPolicy.filter((host) => canOpen(parsed, host));
  if (opening.length === 0) return noKey(parsed, withPolicy);
  const labelled = opening.filter((host) => missingLabels(parsed, host).length === 0);
  if (labelled.length === 0) return noLabels(parsed, opening);
  const refusedBy = (host: T) => {
    const issues = refusals(host);
    // The refusals of a spec that could be read have these as well.
    const ofClass = unlistedSandbox(parsed, host).filter(({ path }) => !issues.some((issue) => issue.path === path));
    return [...issues, ...ofClass];
  };
  const able = labelled.filter((host) => refusedBy(host).length === 0);
  if (able.length === 0) return refusedByAll(parsed, labelled.map(refusedBy));
  const problem = able.find(({ draining }) => !draining)?.problems[0];
  if (problem !== undefined) return `No live host that ${offers(parsed)} takes sessions now: ${problem}`;
  return `Every live host that ${offers(parsed)} is draining.`;
}

const UNKNOWN: ParsedClass = {
  ...{ policy: '', mode: undefined, network: undefined, particular: false, hosts: {} },
  ...{ schema: 0, keyId: '' },
};

/** Returns the end of "that …" for hosts that offer the policy and have the labels of a class. */
function offers({ policy, hosts }: ParsedClass, verb = 'offers'): string {
  const labels = labelsText(hosts, ' and ');
  return `${verb} the policy '${policy}'${labels === '' ? '' : ` with ${labels}`}`;
}

function noPolicy(policy: string, hosts: readonly Host[]): string {
  const others = [...new Set(hosts.flatMap(({ policies }) => policies))].sort().map((other) => `'${other}'`);
  return `No live host offers the policy '${policy}'; they offer ${others.join(', ') || 'none'}. The operator of a host lists what it offers in SHELLFLEET_POLICIES.`;
}

function noKey({ policy, keyId, schema }: ParsedClass, withPolicy: readonly Host[]): string {
  if (!withPolicy.some(({ sealKeys }) => sealKeys.includes(keyId)))
    return `No live host that offers the policy '${policy}' has the seal key ${keyId || '(none)'} of the session.`;
  return `No live host that has the session's policy and seal key understands its spec (schema ${schema}): it needs a newer version of Shellfleet.`;
}

/** Names the labels that the host with the most of them lacks. */
function noLabels(parsed: ParsedClass, hosts: readonly Host[]): string {
  const [fewest = []] = hosts
    .map((host) => missingLabels(parsed, host))
    .sort((a, b) => a.length - b.length || (a.join() < b.join() ? -1 : 1));
  const all = Object.keys(parsed.hosts).length;
  const labels =
    all === 1
      ? `the label ${fewest.join()}`
      : `all of the labels ${labelsText(parsed.hosts, ', ')}; the closest one lacks ${fewest.sort().join(', ')}`;
  return `No live host that offers the policy '${parsed.policy}' has ${labels}. The operator of a host gives it labels in SHELLFLEET_CONFIG (\`labels\`).`;
}

/**
 * Names the fields that are refused by the host with the fewest refusals. Among equal hosts the choice is always the
 * same.
 */
function refusedByAll(parsed: ParsedClass, refused: readonly (readonly FieldIssue[])[]): string {
  const [list] = refused
    .map((issues) => ({
      count: issues.length,
      text: issues.map(({ path, message }) => `${path}: ${message}`).join('; '),
    }))
    .sort((a, b) => a.count - b.count || (a.text < b.text ? -1 : 1))
    .map(({ text }) => text);
  const [whom, verb] =
    refused.length === 1
      ? [`The one live host that ${offers(parsed)}`, 'does not run']
      : [`None of the ${refused.length} live hosts that ${offers(parsed, 'offer')}`, 'runs'];
  return `${whom} ${verb} what the session asks for. ${list}. Ask for less, or have the operator of a host allow it.`;
}
