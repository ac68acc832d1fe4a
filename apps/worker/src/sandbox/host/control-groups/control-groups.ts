import type { HostPolicyPlan } from '@shellfleet/policy';

// One control group, of version 1 or 2, for each session on this host. It limits memory, processes and CPU of the
// session, and counts the processes that the kernel killed for memory. The groups are in a directory at the top:
// systemd ends all processes in a service's group by default, and sessions must outlive the worker.

export type GroupLimits = NonNullable<HostPolicyPlan['group']>;

export interface MemoryEvents {
  /** Processes of the group that the kernel killed for memory. */
  kills: number;
  /** Whether some of them were killed at the group's own limit. In version 1: whether the group has been at it. */
  atLimit: boolean;
}

export interface ControlGroups {
  /**
   * Creates a group. Returns the launcher's arguments: `controller=directory` each, without a controller in version 2.
   */
  create(name: string, limits: GroupLimits): Promise<string[]>;
  memoryEvents(name: string): Promise<MemoryEvents>;
  /** Returns the processor time of the group's processes. Undefined where the kernel does not count it there. */
  processorMs(name: string): Promise<number | undefined>;
  /** Removes an empty group. Does nothing when it is missing. */
  remove(name: string): Promise<void>;
  names(): Promise<string[]>;
  /** Removes the empty directories above the groups. */
  close(): Promise<void>;
}
