import type { Entry } from '@shellfleet/mailbox';
import type { ShellfleetError } from '@shellfleet/protocol';
import type { ShellEnd } from '../shell/shell.ts';
import { type ResultFrame, toErrorResult, toTimings } from './results.ts';
import type { Executed, RunDeps } from './run-deps.ts';

/** What every Result of an entry says, however it came out. */
export function frameOf(entry: Entry, deps: RunDeps, end?: ShellEnd): ResultFrame {
  return {
    sessionId: deps.owner.keys.session,
    hostId: deps.owner.host,
    shell: deps.describeShell(end),
    timings: toTimings(entry, deps.opened().from, deps.opened().to, end?.runMs ?? 0),
  };
}

/** An entry that we failed, with nothing of its own to say. */
export function failedEntry(entry: Entry, error: ShellfleetError, deps: RunDeps): Executed {
  return { result: toErrorResult(error, frameOf(entry, deps)), output: [] };
}
