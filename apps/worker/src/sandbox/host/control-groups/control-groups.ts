import type { HostPlan } from '@shellfleet/policy';
import { isThere } from './group-folder.ts';
import { Version1 } from './version-1.ts';
import { Version2 } from './version-2.ts';

// One control group, of version 1 or 2, for each session on this host. It limits memory, processes and CPU of the whole session, and
// counts the processes that were killed because memory ran out.
//
// The groups are in a folder at the top, not in the worker's group: systemd ends all processes in a service's group by default, and
// sessions must outlive the worker.

export type GroupLimits = NonNullable<HostPlan['group']>;

export interface ControlGroups {
  /** Returns the launcher's arguments: `controller=folder` each, without a controller in version 2. */
  create(name: string, limits: GroupLimits): Promise<string[]>;
  /** Number of its processes that were killed because memory ran out. */
  oomKills(name: string): Promise<number>;
  /** Removes an empty group; does nothing when it is missing. */
  remove(name: string): Promise<void>;
  /** The names of all groups. */
  names(): Promise<string[]>;
  /** Removes the folders above the groups that are empty. */
  close(): Promise<void>;
}

const PROBE = 'probe';

/** `top`: the mount point of the control groups. `below`: folder for the sessions' groups. Returns the reason when this host cannot have them. */
export async function openControlGroups(top: string, below: string): Promise<ControlGroups | string> {
  const groups = (await isThere(`${top}/cgroup.controllers`)) ? new Version2(top, below) : new Version1(top, below);
  try {
    await groups.create(PROBE, { memoryBytes: 2 ** 26, cpus: 1, pids: 16 });
    await groups.oomKills(PROBE);
    await groups.remove(PROBE);
    return groups;
  } catch (error) {
    await groups.remove(PROBE).catch(() => undefined);
    await groups.close().catch(() => undefined);
    return (error as Error).message;
  }
}
