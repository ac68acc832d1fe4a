import type { FieldIssue, ResolvedSessionSpec } from '@shellfleet/protocol';

type RequestedLimits = ResolvedSessionSpec['limits'];

export interface HostBounds {
  memoryBytes: number;
  cpus: number;
  pids: number;
  /** Whether the storage driver can limit the disk of a container. */
  diskQuota: boolean;
}

/**
 * Returns the limits that exceed this host's resources. The schema has already checked the bounds that hold for all
 * hosts.
 */
export function checkBounds(limits: RequestedLimits, most: HostBounds): FieldIssue[] {
  return [
    ...tooMuch('limits.memoryBytes', limits.memoryBytes, most.memoryBytes, 'bytes of memory'),
    ...tooMuch('limits.cpus', limits.cpus, most.cpus, 'cpus'),
    ...tooMuch('limits.pids', limits.pids, most.pids, 'processes for one session'),
  ];
}

/**
 * Returns an issue with the message `otherwise` if a limit is requested. It is called for limits that the host cannot
 * enforce.
 */
export function checkEnforceable(path: string, asked: number | undefined, otherwise: string): FieldIssue[] {
  return asked === undefined ? [] : [{ path, message: otherwise }];
}

function tooMuch(path: string, asked: number | undefined, most: number, unit: string): FieldIssue[] {
  if (asked === undefined || asked <= most) return [];
  return [{ path, message: `asks for ${asked}, and this host has ${most} ${unit}` }];
}
