import { existsSync } from 'node:fs';
import type { ControlGroups } from './control-groups.ts';
import { Version1 } from './version-1.ts';
import { Version2 } from './version-2.ts';

const PROBE = 'probe';

/** Opens the control groups at `top`; those of sessions are in `below`. Returns the reason if this host has none. */
export async function openControlGroups(top: string, below: string): Promise<ControlGroups | string> {
  const groups = existsSync(`${top}/cgroup.controllers`) ? new Version2(top, below) : new Version1(top, below);
  try {
    await groups.create(PROBE, { memoryBytes: 2 ** 26, cpus: 1, pids: 16 });
    await groups.memoryEvents(PROBE);
    await groups.remove(PROBE);
    return groups;
  } catch (error) {
    await groups.remove(PROBE).catch(() => undefined);
    await groups.close().catch(() => undefined);
    return (error as Error).message;
  }
}
