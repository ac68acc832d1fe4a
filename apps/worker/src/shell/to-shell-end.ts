import { constants } from 'node:os';
import type { decodeEnd } from '@shellfleet/keeper';
import type { ShellEnd } from './shell.ts';

export function toShellEnd(end: ReturnType<typeof decodeEnd>): ShellEnd {
  return {
    reason: end.reason,
    exitCode: end.exitCode,
    signal: end.signal ? (signalNames.get(end.signal) ?? `SIG${end.signal}`) : null,
    shell: { state: end.shellState, shellNumber: end.shellNumber, ...(end.shellReason && { reason: end.shellReason }) },
    totals: end.totals,
    runMs: end.runMs,
  };
}

const signalNames = new Map(Object.entries(constants.signals).map(([name, number]) => [number as number, name]));
