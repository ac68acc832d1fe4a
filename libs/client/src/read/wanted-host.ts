import { DEFAULTS, labelsText, type ResolvedSessionSpec, type SessionInfo, workspaceOf } from '@shellfleet/protocol';

/** Returns what a host must have to take the session, and what the session would like of its host. */
export function wantedHost(spec: ResolvedSessionSpec): Pick<SessionInfo, 'needs' | 'wishes'> {
  const { policy, image, user, sandbox, redactFormats, keepOnFailure, near, hosts } = spec;
  const selection = sandbox?.selection === 'auto' ? undefined : sandbox?.selection;
  const needs = {
    policy: policy.type,
    'policy.runtime': policy.type === 'docker' ? policy.runtime : undefined,
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

/** Returns the limits that a host may refuse: those above the defaults, and all if it may lack control groups. */
function limitsToMeet({ policy, limits }: ResolvedSessionSpec): [string, number][] {
  const usual: Readonly<Record<string, number>> = policy.type === 'docker' ? DEFAULTS.limits : {};
  return Object.entries(limits).flatMap(([name, value]) =>
    value === undefined || value <= (usual[name] ?? 0) ? [] : [[`limits.${name}`, value]],
  );
}
