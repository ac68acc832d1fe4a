import { DEFAULTS, type ResolvedSessionSpec } from '@shellfleet/protocol';

type Asked = Pick<
  ResolvedSessionSpec,
  'policy' | 'image' | 'user' | 'workspace' | 'sandbox' | 'limits' | 'redactFormats' | 'keepOnFailure'
>;

/** What every operator allows, beside what a policy gives anyway. */
const USUAL_MODES: readonly (string | undefined)[] = [undefined, 'read-only', 'workspace-write'];
const USUAL_NETWORKS: readonly (string | undefined)[] = [undefined, 'restricted'];
/** What the policy `host` gives anyway: it has no sandbox. */
const HOST_MODES: readonly (string | undefined)[] = [undefined, 'external'];
const HOST_NETWORKS: readonly (string | undefined)[] = [undefined, 'full'];

/**
 * Whether there may be hosts that offer the session's policy and refuse the session, because of what their operators allow or what they have. Such
 * sessions wait in queues of their own, from which a host takes only those that it can run. It errs on the safe side: a session that is
 * particular needlessly costs its host a look at its spec.
 */
export function isParticular(asked: Asked): boolean {
  const { policy, image, user, workspace, sandbox, limits, redactFormats, keepOnFailure } = asked;
  const usualModes = policy.type === 'host' ? HOST_MODES : USUAL_MODES;
  const usualNetworks = policy.type === 'host' ? HOST_NETWORKS : USUAL_NETWORKS;
  const isRelaxed =
    (sandbox?.selection === 'forbid' && policy.type !== 'host') ||
    !usualModes.includes(sandbox?.mode) ||
    !usualNetworks.includes(sandbox?.network);
  const named = [image, user, workspace, policy.type === 'docker' ? policy.runtime : undefined];
  const { memoryBytes, cpus, pids } = DEFAULTS.limits;
  const isLarge = (limits.memoryBytes ?? 0) > memoryBytes || (limits.cpus ?? 0) > cpus || (limits.pids ?? 0) > pids;
  // Only hosts with control groups can limit a whole session that has no container.
  const isBounded = policy.type !== 'docker' && (limits.cpus !== undefined || limits.pids !== undefined);
  const isQuota = limits.diskBytes !== undefined;
  const isNamed = named.some((field) => field !== undefined);
  return isRelaxed || isNamed || isLarge || isBounded || isQuota || !redactFormats || keepOnFailure;
}
