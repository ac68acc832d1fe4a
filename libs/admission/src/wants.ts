import type { HostBeat, PolicyName, ResolvedSessionSpec } from '@shellfleet/protocol';

// What a session asks for beyond what every operator allows: such sessions wait in queues of their own, for the hosts that allow it.

/** What no operator has to allow. */
const USUAL_MODES: readonly string[] = ['read-only', 'workspace-write'];
const USUAL_NETWORKS: readonly string[] = ['restricted'];

/** In this order: `mode-…`, `network-…`, `runtime-…`. Under `host` there is nothing to relax: that policy has no sandbox. */
export function wantsOf({ policy, sandbox }: Pick<ResolvedSessionSpec, 'policy' | 'sandbox'>): string[] {
  if (policy.type === 'host') return [];
  const mode = sandbox?.selection === 'forbid' ? 'danger-full-access' : sandbox?.mode;
  const network = sandbox?.network;
  const runtime = policy.type === 'docker' ? policy.runtime : undefined;
  return [
    ...(mode === undefined || USUAL_MODES.includes(mode) ? [] : [`mode-${mode}`]),
    ...(network === undefined || USUAL_NETWORKS.includes(network) ? [] : [`network-${network}`]),
    ...(runtime === undefined ? [] : [`runtime-${runtime}`]),
  ];
}

/** Every combination of wants that a host with these allowances serves, the empty one first. */
export function offeredWants(policy: PolicyName, { modes, networks, runtimes }: HostBeat['allow']): string[][] {
  if (policy === 'host') return [[]];
  const choices = [
    relaxed('mode', modes, USUAL_MODES),
    relaxed('network', networks, USUAL_NETWORKS),
    policy === 'docker' ? relaxed('runtime', runtimes, []) : [],
  ];
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
    ...(wants.some((want) => want.startsWith('runtime-'))
      ? [`runtimes ${list(hosts.flatMap(({ allow }) => allow.runtimes))}`]
      : []),
  ];
  return `No live host that offers the policy '${policy}' allows ${named}; they allow the ${allowed.join(' and the ')}. Ask for less, or have the operator of a host allow it (\`allow:\` in SHELLFLEET_CONFIG).`;
}

function isAllowed(want: string, { modes, networks, runtimes }: HostBeat['allow']): boolean {
  const at = want.indexOf('-');
  const lists: Record<string, readonly string[]> = { mode: modes, network: networks, runtime: runtimes };
  return lists[want.slice(0, at)]?.includes(want.slice(at + 1)) === true;
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
