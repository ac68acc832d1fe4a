import { DEFAULTS, type ResolvedSessionSpec } from '@shellfleet/protocol';

type Asked = Pick<
  ResolvedSessionSpec,
  'policy' | 'image' | 'user' | 'workspace' | 'sandbox' | 'limits' | 'redactFormats' | 'keepOnFailure'
>;

/** Modes that every operator allows. */
const USUAL_MODES: readonly (string | undefined)[] = [undefined, 'read-only', 'workspace-write'];
const USUAL_NETWORKS: readonly (string | undefined)[] = [undefined, 'restricted'];
/** Modes of every host with the policy `host`, which has no sandbox. */
const HOST_MODES: readonly (string | undefined)[] = [undefined, 'external'];
const HOST_NETWORKS: readonly (string | undefined)[] = [undefined, 'full'];

/**
 * Tells whether a host of the policy may refuse the session. Particular sessions wait in separate queues, from which a
 * host takes those that it can run. In doubt a session is particular: hosts then only read its spec as well.
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
