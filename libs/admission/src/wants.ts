import type { HostBeat, PolicyName, ResolvedSessionSpec } from '@shellfleet/protocol';

// What a session asks for beyond what every operator allows: such sessions wait in queues of their own, for the hosts that allow it.

/** What no operator has to allow. */
const USUAL_MODES: readonly string[] = ['read-only', 'workspace-write'];
const USUAL_NETWORKS: readonly string[] = ['restricted'];

/** In this order: `mode-…`, `network-…`. Under `host` there is nothing to relax: that policy has no sandbox. */
export function wantsOf({ policy, sandbox }: Pick<ResolvedSessionSpec, 'policy' | 'sandbox'>): string[] {
  if (policy.type === 'host' || sandbox === undefined) return [];
  const mode = sandbox.selection === 'forbid' ? 'danger-full-access' : sandbox.mode;
  const { network } = sandbox;
  return [
    ...(mode === undefined || USUAL_MODES.includes(mode) ? [] : [`mode-${mode}`]),
    ...(network === undefined || USUAL_NETWORKS.includes(network) ? [] : [`network-${network}`]),
  ];
}

/** Every combination of wants that a host with these allowances serves, the empty one first. */
export function offeredWants(policy: PolicyName, { modes, networks }: HostBeat['allow']): string[][] {
  if (policy === 'host') return [[]];
  const choices = [relaxed('mode', modes, USUAL_MODES), relaxed('network', networks, USUAL_NETWORKS)];
  return choices.reduce<string[][]>(
    (combinations, options) => combinations.flatMap((wants) => [wants, ...options.map((option) => [...wants, option])]),
    [[]],
  );
}

const relaxed = (kind: string, allowed: readonly string[], usual: readonly string[]) =>
  [...new Set(allowed)].filter((name) => !usual.includes(name)).map((name) => `${kind}-${name}`);

/** Why none of these hosts, which offer the policy, allows all of that; undefined when one does. */
export function notAllowedReason(
  policy: string,
  wants: readonly string[],
  hosts: readonly Pick<HostBeat, 'allow'>[],
): string | undefined {
  if (hosts.some(({ allow }) => wants.every((want) => isAllowed(want, allow)))) return undefined;
  const named = wants.map(nameOf).join(' and ');
  const allowed = [
    `modes ${list(hosts.flatMap(({ allow }) => allow.modes))}`,
    `networks ${list(hosts.flatMap(({ allow }) => allow.networks))}`,
  ];
  return `No live host that offers the policy '${policy}' allows ${named}; they allow the ${allowed.join(' and the ')}. Ask for less, or have the operator of a host allow it (\`allow:\` in SHELLFLEET_CONFIG).`;
}

function isAllowed(want: string, { modes, networks }: HostBeat['allow']): boolean {
  return [...modes.map((mode) => `mode-${mode}`), ...networks.map((network) => `network-${network}`)].includes(want);
}

/** `mode-external` → `the mode 'external'` */
function nameOf(want: string): string {
  const at = want.indexOf('-');
  return `the ${want.slice(0, at)} '${want.slice(at + 1)}'`;
}

const list = (names: readonly string[]) =>
  [...new Set(names)]
    .sort()
    .map((name) => `'${name}'`)
    .join(', ') || '(none)';
