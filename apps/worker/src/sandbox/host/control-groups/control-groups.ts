import type { HostPolicyPlan } from '@shellfleet/policy';

// One control group, of version 1 or 2, for each session on this host. It limits memory, processes and CPU of the whole session, and
// counts the processes that were killed because memory ran out.
//
// The groups are in a folder at the top, not in the worker's group: systemd ends all processes in a service's group by default, and
// sessions must outlive the worker.

export type GroupLimits = NonNullable<HostPolicyPlan['group']>;

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
