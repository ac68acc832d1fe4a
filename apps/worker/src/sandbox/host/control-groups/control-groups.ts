import type { HostPlan } from '@shellfleet/policy';
import { isThere } from './group-folder.ts';
import { Version1 } from './version-1.ts';
import { Version2 } from './version-2.ts';

// One control group for each session on this host, of either version: it bounds memory, processes and CPU of the session as a whole,
// and says what was killed for want of memory.
//
// They lie below a folder of their own at the top, not below the worker's group: whoever ends a service by its group (systemd's
// default) does not end the sessions that are to outlive it.

export type GroupLimits = NonNullable<HostPlan['group']>;

export interface ControlGroups {
  /** Returns the launcher's arguments: `controller=folder` each, without a controller in version 2. */
  create(name: string, limits: GroupLimits): Promise<string[]>;
  /** How many processes of it were killed for want of memory. */
  oomKills(name: string): Promise<number>;
  /** Of one that is empty, or never was. */
  remove(name: string): Promise<void>;
  /** Of all that there are. */
  names(): Promise<string[]>;
  /** Removes the folders above them, where nothing is left in those. */
  close(): Promise<void>;
}

const PROBE = 'probe';

/** `top`: where the kernel's control groups are. `below`: where ours go. A string says why this host has none for us. */
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
