// The two histories of a run: the observations of clients, and the marks of commands in their sandboxes. Nothing here
// depends on the way in which Shellfleet works.

/** One command of the workload. Its id is derived from the seed, and is its idempotency key. */
export interface Operation {
  id: string;
  session: string;
  /** Index among the commands of its session, from 0. */
  index: number;
  script: string;
  stdin?: string;
  expect: Expectation;
  reader: ReaderKind;
  /** Whether the client waits for the Result before it submits the next command. */
  waits: boolean;
  pauseMs: number;
}

/** Expected end of the command when nothing else ends it. `stdout` leaves out the first line, `<id> <count>`. */
export interface Expectation {
  outcome: 'success' | 'failure';
  exitCode: number | null;
  stdout: Printed;
  stderr: Printed;
  /** Whether the command ends its own shell. */
  endsShell: boolean;
}

export interface Printed {
  bytes: number;
  sha256: string;
}

/**
 * Ways to read the streamed output: not at all, from the start to the end, slowly, with disconnections, or after the
 * end.
 */
export const READERS = ['absent', 'steady', 'slow', 'leaving', 'late'] as const;
export type ReaderKind = (typeof READERS)[number];

/** One line of a client's history. `at`: milliseconds of the wall clock of this machine. */
export type ClientEvent = { at: number; op: string } & (
  | { type: 'submit' }
  | { type: 'accepted'; commandId: string }
  | { type: 'refused'; code: string; retryable: boolean }
  | { type: 'result'; result: SeenResult }
  /** The Result is no longer kept. */
  | { type: 'expired' }
  | { type: 'output'; stdout: SeenOutput; stderr: SeenOutput }
);

/** The streamed output of a command, without the first line of stdout. */
export interface SeenOutput extends Printed {
  omittedBytes: number;
}

export interface SeenResult {
  outcome: string;
  exitCode: number | null;
  reason?: string;
  errorCode?: string;
  errorMessage?: string;
  /** First line of stdout, `<id> <count>`. */
  head: string;
  /** Stdout without its first line. */
  stdout: Printed;
  stderr: Printed;
  truncated: boolean;
  totals: { stdoutBytes: number; stderrBytes: number };
  shell: { state: string; reason?: string | undefined; epoch: number };
  hostId: string | null;
}

/** A line that a command appended to the file of its session, at its begin or its end. */
export interface Mark {
  type: 'begin' | 'end';
  op: string;
}

export interface SessionHistory {
  session: string;
  /** Time for which the host may be away before the shell counts as lost. */
  leaseMs: number;
  /** Operations in the order of their submits. */
  operations: Operation[];
  marks: Mark[];
  /** Terminal events in the session's stream after the run. */
  terminals: { commandId: string; outcome: string }[];
}

export interface History {
  sessions: SessionHistory[];
  clientEvents: ClientEvent[];
  faults: Fault[];
  /** Ids of the commands that a host began, by the journals of all hosts. */
  begun: string[];
  /** Whether the retention is shorter than the run, so that terminal events of old commands are gone. */
  forgets: boolean;
}

export interface Fault {
  kind: string;
  /** A host, a session, a client, or `redis`. */
  target: string;
  /** Time at which the fault was injected. */
  from: number;
  /** Time at which the fault was healed. */
  to: number;
  /** Reason why a planned fault could not be injected here. */
  notRun?: string;
  /** Time of the state to which Redis was restored, if it was. */
  restoredTo?: number;
}

export interface Violation {
  rule: string;
  session: string;
  text: string;
}
