// Translates the keeper's END message.
import { constants } from 'node:os';
import type { decodeEnd } from '@shellfleet/keeper';
import type { FileFailure, ShellEnd } from './shell.ts';

export function toShellEnd(end: ReturnType<typeof decodeEnd>): ShellEnd {
  return {
    reason: end.reason,
    exitCode: end.exitCode,
    signal: end.signal ? (signalNames.get(end.signal) ?? `SIG${end.signal}`) : null,
    shell: { state: end.shellState, shellNumber: end.shellNumber, ...(end.shellReason && { reason: end.shellReason }) },
    totals: end.totals,
    runMs: end.runMs,
    ...(end.errno && { fileFailure: fileFailures.get(end.errno) ?? 'other' }),
  };
}

const signalNames = new Map(Object.entries(constants.signals).map(([name, number]) => [number as number, name]));

/** By Linux errno, as the keeper has them; the worker itself may run on another system. */
const fileFailures = new Map<number, FileFailure>([
  [1, 'denied'],
  [2, 'not-found'],
  [13, 'denied'],
  [20, 'path-invalid'],
  [21, 'is-directory'],
  [22, 'path-invalid'],
  [26, 'denied'],
  [27, 'too-large'],
  [28, 'no-space'],
  [30, 'denied'],
  [36, 'path-invalid'],
  [39, 'is-directory'],
  [40, 'path-invalid'],
  [116, 'parts-missing'],
  [122, 'no-space'],
]);
