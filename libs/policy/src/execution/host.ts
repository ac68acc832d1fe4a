import { type ResolvedSessionSpec, withDefaultLimits } from '@shellfleet/protocol';
import { checkBounds, checkEnforceable, type HostBounds } from '../limits.ts';
import { checkCwd, checkWorkspace } from './folders.ts';
import { refuse } from './refusal.ts';

// The host policy as data: what a session on the host itself gets. It has the host's files, as its user may see them, and the
// host's network; who that user is, is the operator's word and no field of a spec.

/** What the operator of this host allows, and what the host has. */
export interface HostAllowances {
  /** Folders below which a session may name its workspace. */
  workspaces: readonly string[];
  bounds: HostBounds;
  /** Whether memory, processes and CPU of a session can be bounded as one. */
  controlGroups: boolean;
}

/** What will be enforced, with nothing left to decide. */
export interface HostPlan {
  /** A folder of the host; undefined: the session gets its own, which ends with it. */
  workspace: string | undefined;
  /** Of the whole session. Undefined: this host cannot, and nobody asked. */
  group: { memoryBytes: number; cpus: number; pids: number } | undefined;
  /** Of each process. */
  process: { addressSpaceBytes: number | undefined; cpuTimeSeconds: number | undefined };
}

const NO_GROUPS = 'this host has no control group for its sessions, so the host policy cannot bound it';
const NO_DISK_QUOTA = 'the host policy cannot bound the disk';

/** The caller has resolved the symbolic links of `spec.workspace`. */
export function planHost(spec: ResolvedSessionSpec, allowances: HostAllowances): HostPlan {
  const { limits } = spec;
  const { controlGroups } = allowances;
  const wanted = controlGroups ? withDefaultLimits(limits) : limits;
  refuse([
    ...checkWorkspace(spec.workspace, allowances.workspaces),
    ...checkCwd(spec.cwd),
    ...checkBounds(wanted, allowances.bounds),
    ...(controlGroups ? [] : checkEnforceable('limits.cpus', limits.cpus, NO_GROUPS)),
    // RLIMIT_NPROC counts all sessions of a user together: one would starve the others.
    ...(controlGroups ? [] : checkEnforceable('limits.pids', limits.pids, NO_GROUPS)),
    ...checkEnforceable('limits.diskBytes', limits.diskBytes, NO_DISK_QUOTA),
  ]);
  return {
    workspace: spec.workspace,
    group: controlGroups ? toGroup(withDefaultLimits(limits)) : undefined,
    process: {
      addressSpaceBytes: controlGroups ? undefined : limits.memoryBytes,
      cpuTimeSeconds: limits.cpuTimeSeconds,
    },
  };
}

function toGroup({ memoryBytes, cpus, pids }: NonNullable<HostPlan['group']>): HostPlan['group'] {
  return { memoryBytes, cpus, pids };
}
