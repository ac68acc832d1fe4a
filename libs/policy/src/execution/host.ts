import {
  type FieldIssue,
  type ResolvedSessionSpec,
  refusedSandbox,
  withDefaultLimits,
  workspaceOf,
} from '@shellfleet/protocol';
import { checkBounds, checkEnforceable, type HostBounds } from '../limits.ts';
import { checkFormats } from './check-formats.ts';
import { checkCwd, checkWorkspace } from './folders.ts';
import { refuse } from './refusal.ts';
import { checkAllowed, DEFAULT_SANDBOX_ALLOWANCES, type SandboxAllowances } from './sandbox-modes.ts';

// The host policy as data: the settings of a session that runs on the host itself. The session sees the host's network,
// and the host's files as far as its user may. The operator chooses that user; a spec cannot.

/** Everything that the operator of this host allows, and the resources of the host. */
export interface HostAllowances {
  /** Folders below which a session may name its workspace. */
  workspaces: readonly string[];
  bounds: HostBounds;
  /** Whether control groups can limit memory, processes and CPU of a session as a whole. */
  controlGroups: boolean;
  /** Most that a session's sandbox may be given. Default: DEFAULT_SANDBOX_ALLOWANCES. */
  sandbox?: SandboxAllowances;
  /** Whether a session may have its output without the built-in redaction of formats. Default: no. */
  redactFormats?: boolean;
}

/** The session's settings, fully decided. */
export interface HostPolicyPlan {
  /** A folder of the host. Undefined: the session gets a temporary one. */
  workspace: string | undefined;
  /** Limits of the whole session. Undefined: this host has no control groups, and the spec asks for no limit. */
  group: { memoryBytes: number; cpus: number; pids: number } | undefined;
  /** Limits of each process. */
  process: {
    addressSpaceBytes: number | undefined;
    cpuTimeSeconds: number | undefined;
    fileSizeBytes: number | undefined;
  };
}

const NO_GROUPS = 'this host has no control group for its sessions, so nothing can bound it';

/**
 * Throws SANDBOX_UNAVAILABLE, with every field that is refused.
 * The caller has resolved the symbolic links of `spec.workspace`.
 */
export function planHost(spec: ResolvedSessionSpec, allowances: HostAllowances): HostPolicyPlan {
  const { limits } = spec;
  const { controlGroups } = allowances;
  refuse([
    ...checkHostOffer(spec, allowances),
    ...checkCwd(spec.cwd),
    ...checkEnforceable('limits.diskBytes', limits.diskBytes, `the ${spec.policy.type} policy cannot bound the disk`),
    ...refusedSandbox(spec),
  ]);
  return {
    workspace: workspaceOf(spec)?.path,
    group: controlGroups ? toGroup(withDefaultLimits(limits)) : undefined,
    process: {
      addressSpaceBytes: controlGroups ? undefined : limits.memoryBytes,
      cpuTimeSeconds: limits.cpuTimeSeconds,
      fileSizeBytes: limits.fileSizeBytes,
    },
  };
}

/**
 * What of the spec this host refuses, and another may run. Also
 * for the policies that put a wall around the host policy.
 */
export function checkHostOffer(spec: ResolvedSessionSpec, allowances: HostAllowances): FieldIssue[] {
  const { limits } = spec;
  const { controlGroups } = allowances;
  return [
    ...checkWorkspace(workspaceOf(spec)?.path, allowances.workspaces),
    ...checkBounds(controlGroups ? withDefaultLimits(limits) : limits, allowances.bounds),
    ...(controlGroups ? [] : checkEnforceable('limits.cpus', limits.cpus, NO_GROUPS)),
    // RLIMIT_NPROC counts the processes of a user in all sessions, so one session could starve the others.
    ...(controlGroups ? [] : checkEnforceable('limits.pids', limits.pids, NO_GROUPS)),
    ...checkFormats(spec, allowances),
    ...checkAllowed(spec, allowances.sandbox ?? DEFAULT_SANDBOX_ALLOWANCES),
  ];
}

function toGroup({ memoryBytes, cpus, pids }: NonNullable<HostPolicyPlan['group']>): HostPolicyPlan['group'] {
  return { memoryBytes, cpus, pids };
}
