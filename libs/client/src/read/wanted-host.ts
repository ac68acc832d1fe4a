import {
  DEFAULTS,
  labelsText,
  type PolicyName,
  type ResolvedSessionSpec,
  type SessionInfo,
  workspaceOf,
} from '@shellfleet/protocol';

/** Returns what a host must have to take the session, and what the session would like of its host. */
export function wantedHost(spec: ResolvedSessionSpec): Pick<SessionInfo, 'needs' | 'wishes'> {
  const { policy, image, user, sandbox, redactFormats, keepOnFailure, near, hosts } = spec;
  const selection = sandbox?.selection === 'auto' ? undefined : sandbox?.selection;
  const needs = {
    policy: policy.type,
    'policy.runtime': policy.type === 'docker' ? policy.runtime : undefined,
    'policy.runtimeClass': policy.type === 'kubernetes' ? policy.runtimeClass : undefined,
    ...{ image, user, workspace: workspaceOf(spec)?.path },
    ...{ 'sandbox.mode': sandbox?.mode, 'sandbox.network': sandbox?.network, 'sandbox.selection': selection },
    'sandbox.allowedHosts': sandbox?.allowedHosts?.join(' '),
    ...Object.fromEntries(limitsToMeet(spec)),
    redactFormats: redactFormats ? undefined : false,
    keepOnFailure: keepOnFailure || undefined,
    hosts: labelsText(hosts, ' ') || undefined,
  };
  const wishes = { ...(image === undefined ? {} : { image }), ...(near === undefined ? {} : { near }) };
  const given = Object.entries(needs).filter(([, value]) => value !== undefined);
  return {
    needs: Object.fromEntries(given.map(([field, value]) => [field, String(value)])),
    ...(Object.keys(wishes).length === 0 ? {} : { wishes }),
  };
}

const { memoryBytes, cpus } = DEFAULTS.limits;
const USUAL_LIMITS: Partial<Record<PolicyName, Readonly<Record<string, number>>>> = {
  docker: DEFAULTS.limits,
  kubernetes: { memoryBytes, cpus },
};

/** Returns the limits that a host may refuse: those above the defaults, and all if it may lack control groups. */
function limitsToMeet({ policy, limits }: ResolvedSessionSpec): [string, number][] {
  const usual: Readonly<Record<string, number>> = USUAL_LIMITS[policy.type] ?? {};
  const { resources = {}, ...numbers } = limits;
  const bounds = Object.entries(numbers).filter(([name, value]) => value !== undefined && value > (usual[name] ?? 0));
  return [...bounds, ...Object.entries(resources).map(([name, count]) => [`resources.${name}`, count] as const)].map(
    ([name, value = 0]) => [`limits.${name}`, value],
  );
}
