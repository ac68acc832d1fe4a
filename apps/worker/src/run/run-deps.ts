import type { Owner, Sealer } from '@shellfleet/mailbox';
import type { OutputEntry, ResolvedSessionSpec, WireResult } from '@shellfleet/protocol';
import type { Logger } from 'pino';
import type { HostLog } from '../host-log/host-log.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { SessionShell } from '../shell/session-shell.ts';
import type { ShellEnd } from '../shell/shell.ts';

/** What one entry needs of the session that runs it. */
export interface RunDeps {
  owner: Owner;
  sealer: Sealer;
  spec: ResolvedSessionSpec;
  shell: SessionShell;
  hostLog: HostLog;
  redaction: SessionRedaction;
  logger: Logger;
  /** The shell was being opened from … to …, by the host's clock. */
  opened(): { from: number; to: number };
  /** Aborts when this host must not write the session any more. */
  signal: AbortSignal;
  /** A caller has cancelled the entry. */
  isCancelled(entryId: string): boolean;
  /** An entry of another session runs on this host now. */
  othersRun(): boolean;
  /** The entry is on the shell now, and can be stopped. */
  onTurn(entryId: string, stop: () => void): void;
  /** Who is to be called when something was written to the stdin of what runs. */
  onInputBell(ring: (() => void) | undefined): void;
  /** What a Result says of the shell at its end. */
  describeShell(end?: ShellEnd): WireResult['shell'];
  /** Whether the next entry may be started in the step that ends this one. */
  mayTakeNext(): boolean;
}

/** How an entry came out, before it is recorded. */
export interface Executed {
  result: WireResult;
  /** output that was not stored yet */
  output: OutputEntry[];
  /** what a file operation hands back, as JSON */
  answer?: string;
}
