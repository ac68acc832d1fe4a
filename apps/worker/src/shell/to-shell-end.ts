import { constants } from 'node:os';
import type { decodeEnd } from '@shellfleet/keeper';
import type { Usage } from '@shellfleet/protocol';
import type { ShellEnd } from './shell.ts';

export function toShellEnd(end: ReturnType<typeof decodeEnd>): ShellEnd {
  return {
    reason: end.reason,
    exitCode: end.exitCode,
    signal: end.signal ? (signalNames.get(end.signal) ?? `SIG${end.signal}`) : null,
    shell: { state: end.shellState, shellNumber: end.shellNumber, ...(end.shellReason && { reason: end.shellReason }) },
    totals: end.totals,
    runMs: end.runMs,
    way: end.hasBuiltin ? 'builtin' : 'loop',
    ...(end.usage && { usage: toUsage(end.usage) }),
  };
}

const toUsage = ({ processorMicros, memoryPeakBytes }: NonNullable<ReturnType<typeof decodeEnd>['usage']>): Usage => ({
  cpuMs: Math.round(processorMicros / 1_000),
  peakMemoryBytes: memoryPeakBytes,
});

const signalNames = new Map(Object.entries(constants.signals).map(([name, number]) => [number as number, name]));
