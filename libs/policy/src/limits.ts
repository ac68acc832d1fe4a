import type { FieldIssue, ResolvedSessionSpec } from '@shellfleet/protocol';

export type RequestedLimits = ResolvedSessionSpec['limits'];

/** What one host can give a session. */
export interface HostBounds {
  memoryBytes: number;
  cpus: number;
  pids: number;
  /** Whether its storage driver can bound the disk of a container. */
  diskQuota: boolean;
}

/** What this host cannot give. Bounds that hold on every host were checked when the spec was parsed. */
export function checkLimits(limits: RequestedLimits, most: HostBounds): FieldIssue[] {
  return [
    ...tooMuch('limits.memoryBytes', limits.memoryBytes, most.memoryBytes, 'bytes of memory'),
    ...tooMuch('limits.cpus', limits.cpus, most.cpus, 'cpus'),
    ...tooMuch('limits.pids', limits.pids, most.pids, 'processes for one session'),
    ...(limits.diskBytes !== undefined && !most.diskQuota
      ? [{ path: 'limits.diskBytes', message: "this host's storage driver cannot bound the disk of a container" }]
      : []),
    ...(limits.cpuTimeSeconds !== undefined
      ? [
          {
            path: 'limits.cpuTimeSeconds',
            message: 'the docker policy cannot bound CPU seconds: use limits.cpus and timeoutMs',
          },
        ]
      : []),
  ];
}

function tooMuch(path: string, asked: number, most: number, unit: string): FieldIssue[] {
  return asked <= most ? [] : [{ path, message: `asks for ${asked}, and this host has ${most} ${unit}` }];
}
