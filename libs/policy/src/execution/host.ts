import {
  type FieldIssue,
  type ResolvedSessionSpec,
  refusedSandbox,
  withDefaultLimits,
  workspaceOf,
} from '@shellfleet/protocol';
import { checkBounds, checkEnforceable, type HostBounds } from '../limits.ts';
import { checkFormats } from './check-formats.ts';
import { checkCwd, checkWorkspace } from './directories.ts';
import { refuse } from './refusal.ts';
import { checkAllowed, DEFAULT_SANDBOX_ALLOWANCES, type SandboxAllowances } from './sandbox-modes.ts';

// Plans policy `host`: sessions that run on the host itself. They use the host's network, and the files that their user
// may access. The operator chooses that user; a spec cannot.

export interface HostAllowances {
  /** Directories below which a session may name its workspace. */
  workspaces: readonly string[];
  bounds: HostBounds;
  /** Whether control groups can limit memory, processes and CPU of a session as a whole. */
  controlGroups: boolean;
  /** The most that a session's sandbox may get. Default: DEFAULT_SANDBOX_ALLOWANCES. */
  sandbox?: SandboxAllowances;
  /** Whether a session may switch off the built-in redaction of formats. Default: no. */
  redactFormats?: boolean;
}

export interface HostPolicyPlan {
  /** Directory of the host that is the workspace. Undefined: a temporary directory. */
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
 * Plans the session. The symbolic links of `spec.workspace` must be resolved. Throws SANDBOX_UNAVAILABLE with every
 * refused field.
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
 * Returns the fields that this host refuses and another host may accept. It is also used by the policies that build on
 * policy `host`.
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
