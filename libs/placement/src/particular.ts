import { DEFAULTS, type ResolvedSessionSpec } from '@shellfleet/protocol';

type Asked = Pick<
  ResolvedSessionSpec,
  'policy' | 'image' | 'user' | 'workspace' | 'sandbox' | 'limits' | 'redactFormats' | 'keepOnFailure'
>;

/**
 * Tells whether a host may refuse the session that offers its policy, mode, network and labels. Particular sessions
 * wait in separate queues, from which a host takes those that it can run. In doubt a session is particular: hosts then
 * only read its spec as well.
 */
export function isParticular(asked: Asked): boolean {
  const { policy, image, user, workspace, sandbox, limits, redactFormats, keepOnFailure } = asked;
  const reachesSome = (sandbox?.allowedHosts ?? []).length > 0;
  const named = [image, user, workspace, runtimeOf(policy)];
  const { memoryBytes, cpus, pids } = DEFAULTS.limits;
  const isLarge = (limits.memoryBytes ?? 0) > memoryBytes || (limits.cpus ?? 0) > cpus || (limits.pids ?? 0) > pids;
  // Only hosts with control groups can limit a whole session that has no container.
  const hasGroup = policy.type === 'docker' || policy.type === 'kubernetes';
  const isBounded = !hasGroup && (limits.cpus !== undefined || limits.pids !== undefined);
  // Only the kubelet of a node bounds the processes of a Pod.
  const isPodBound = policy.type === 'kubernetes' && limits.pids !== undefined;
  const isQuota = limits.diskBytes !== undefined || limits.resources !== undefined;
  const isNamed = named.some((field) => field !== undefined);
  return reachesSome || isNamed || isLarge || isBounded || isPodBound || isQuota || !redactFormats || keepOnFailure;
}

function runtimeOf(policy: Asked['policy']): string | undefined {
  if (policy.type === 'docker') return policy.runtime;
  return policy.type === 'kubernetes' ? policy.runtimeClass : undefined;
}
