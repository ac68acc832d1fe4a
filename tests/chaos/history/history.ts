// The two histories of a run: what clients saw, and what commands wrote in their sandboxes. Nothing here depends on how Shellfleet works.

/** One command of the workload. Its id is derived from the seed, and is its idempotency key. */
export interface Operation {
  id: string;
  session: string;
  /** Place among the commands of its session, from 0. */
  index: number;
  script: string;
  stdin?: string;
  expect: Expectation;
  reader: ReaderKind;
  /** Whether the client waits for its Result before it submits the next one. */
  waits: boolean;
  pauseMs: number;
}

/** What the command does when nothing ends it. The first line of stdout, `<id> <count>`, is not counted in `stdout`. */
export interface Expectation {
  outcome: 'success' | 'failure';
  exitCode: number | null;
  stdout: Printed;
  stderr: Printed;
  /** It ends its own shell. */
  endsShell: boolean;
}

export interface Printed {
  bytes: number;
  sha256: string;
}

/** How the client reads the streamed output: not at all, from the start to the end, slowly, with disconnections, or after the end. */
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
  /** First line of stdout. */
  head: string;
  /** Without the first line. */
  stdout: Printed;
  stderr: Printed;
  truncated: boolean;
  totals: { stdoutBytes: number; stderrBytes: number };
  shell: { state: string; reason?: string | undefined; epoch: number };
  hostId: string | null;
}

/** A line that a command appended to the file of its session: that it began, or that it came to its end. */
export interface Mark {
  type: 'begin' | 'end';
  op: string;
}

export interface SessionHistory {
  session: string;
  /** How long its host may be away before its shell counts as lost. */
  leaseMs: number;
  /** In the order of their submits. */
  operations: Operation[];
  marks: Mark[];
  /** The terminal events in the session's stream after the run. */
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
  /** When it was injected. */
  from: number;
  /** When it was healed. */
  to: number;
  /** It was planned, and could not be injected here. */
  notRun?: string;
  /** For a Redis that was restored: the time of the state that it was restored to. */
  restoredTo?: number;
}

export interface Violation {
  rule: string;
  session: string;
  text: string;
}
