import type { WireError } from './errors.ts';

export const OUTCOMES = [
  'success',
  'failure',
  'timeout',
  'cancellation',
  'denial',
  'blocked',
  'lost',
  'error',
] as const;

/**
 * How a command ended. `success`, `failure`: by itself, with exit code 0 or another one, or by
 * a signal. `timeout`, `cancellation`: it was stopped, or never started. `denial`: a policy or
 * an approver said no; nothing ran. `blocked`: it ran, and a redaction rule withholds its
 * output. `lost`: it started and its end is not known. `error`: the fleet failed.
 */
export type Outcome = (typeof OUTCOMES)[number];

/** What a command reported, or what is known of it. Which of the types it is, its `outcome` tells. */
export type Result =
  | SuccessResult
  | FailureResult
  | TimeoutResult
  | CancellationResult
  | DenialResult
  | BlockedResult
  | LostResult
  | ErrorResult;

/** The fields of every Result. */
export interface ResultFields {
  /** Id of the command, `<session>.<ULID>`, by which `fleet.command` finds it. */
  commandId: string;
  /** The session in which it ran. */
  sessionId: string;
  /**
   * The signal that ended it, such as `SIGKILL`, where the shell itself saw it; else null. A program of the command
   * that dies by a signal is exit code 128 plus its number.
   */
  signal: string | null;
  /**
   * Its stdout after redaction, within `output.maxBytes` and
   * `output.maxLines` of the session. In `encoding` of its options.
   */
  stdout: string;
  /** Its stderr, likewise. */
  stderr: string;
  /** Both streams in the order in which redaction released them. */
  output: string;
  /** Whether a text above is shorter than what the command printed. `command.log` has the rest. */
  truncated: { bytes: boolean; lines: boolean };
  /** What the command printed, after redaction: bytes and lines. */
  totals: { stdoutBytes: number; stderrBytes: number; stdoutLines: number; stderrLines: number };
  /** Number of redactions, by the type of their rule. Never a value. */
  redactions: Record<string, number>;
  /** The idempotency key of the submit stood for this command, which was accepted before. */
  deduplicated: boolean;
  /**
   * The state of the shell after it: `kept`; `partial`: some of it could not be
   * saved; `lost`: the next command gets a fresh one. `reason` says why, in words.
   * `epoch` counts the shells of the session, from 1; 0 when no shell is concerned.
   */
  shell: { state: 'kept' | 'partial' | 'lost'; reason?: string | undefined; epoch: number };
  /** In ms, from acceptance: waiting for its turn and its slot; opening the shell; running; all three. */
  timings: { queuedMs: number; startMs: number; runMs: number; totalMs: number };
  /** The host that ran it. Null when none did. */
  hostId: string | null;
  /** The digest of the image of the container in which it ran, `sha256:…`. Absent where it ran in none. */
  imageDigest?: string | undefined;
  /**
   * How often it was started, when more than once: with `retry: 'idempotent'`, or a second attempt outside its sandbox.
   */
  attempts?: number | undefined;
  /** True when the command ran outside the sandbox of its session. */
  outside?: true | undefined;
  /** What its sandbox seems to have denied it, judged by its output. Only of a `failure` inside the sandbox. */
  denied?: SandboxDenied | undefined;
  /** Why there was no second attempt outside the sandbox, in words, after one was asked for. */
  refused?: string | undefined;
  /**
   * Exit code of the first attempt, and the last 500 bytes of its output. The rest of the Result is about the second.
   */
  firstAttempt?: FirstAttempt | undefined;
  /**
   * The rule that withholds the output from some point on. Always there when
   * the outcome is `blocked`; also of a command that was stopped or lost.
   */
  blocked?: BlockedOutput | undefined;
}

/**
 * What a sandbox has denied a command. A guess from text: a program
 * can print these lines, and can be denied something without one.
 */
export interface SandboxDenied {
  /** What the sandbox withheld. */
  what: 'files' | 'network' | 'system-call';
  /** The line of the output that reports it. */
  line: string;
  /** The same command with `escalate` would be asked about. */
  mayAsk: boolean;
}

/** How the first attempt of a command ended. */
export interface FirstAttempt {
  /** Its exit code. */
  exitCode: number | null;
  /** The end of what it printed, redacted. */
  output: string;
}

/** Why output is withheld. */
export interface BlockedOutput {
  /** The type of the rule. */
  type: string;
  /** Why the rule withholds it. `matched`: it found something. `too-slow`: it could not keep up with the output. */
  reason: 'matched' | 'too-slow';
}

/** Fields of other outcomes, which are absent. They can be read without a look at the outcome. */
interface WithoutError {
  error?: undefined;
  cancelReason?: undefined;
}

/** Result of a command that ended by itself with exit code 0. */
export interface SuccessResult extends ResultFields, WithoutError {
  outcome: 'success';
  /** 0 */
  exitCode: number;
  reason: 'exited';
}

/** Result of a command that ended with another exit code, by a signal, or because memory ran out. */
export interface FailureResult extends ResultFields, WithoutError {
  outcome: 'failure';
  /** 1 to 255; 128 plus the number of the signal when one ended it. */
  exitCode: number;
  /** How it ended. `signalled`: by a signal. `oom`: memory ran out, and the kernel killed one of its processes. */
  reason: 'exited' | 'signalled' | 'oom';
}

/** Result of a command that was stopped at a limit of time, or had not started by its start deadline. */
export interface TimeoutResult extends ResultFields, WithoutError {
  outcome: 'timeout';
  exitCode: null;
  /** The limit: `timeoutMs` (`wall`), `noOutputTimeoutMs`, or `startDeadlineMs` (`not-started`: it was not run). */
  reason: 'wall' | 'no-output' | 'not-started';
  /** The limit that ended it, in ms. Absent when it had not started. */
  limitMs?: number | undefined;
}

/** Result of a command that was cancelled, before or after its start. */
export interface CancellationResult extends ResultFields {
  outcome: 'cancellation';
  exitCode: null;
  reason: 'cancelled';
  /** Why, in the words of who cancelled it. */
  cancelReason?: string | undefined;
  error?: undefined;
}

/** A policy or an approver said no, and nothing ran. `stderr` says why. */
export interface DenialResult extends ResultFields, WithoutError {
  outcome: 'denial';
  exitCode: null;
  reason: 'rules' | 'approver';
}

/** Result of a command that ended by itself, and whose output a redaction rule withholds. */
export interface BlockedResult extends ResultFields, WithoutError {
  outcome: 'blocked';
  /** Its own, 0 to 255. */
  exitCode: number;
  reason: 'exited' | 'signalled' | 'oom';
  blocked: BlockedOutput;
}

/** Result of a command that started, and whose end is not known. It may have taken effect, and is not run again. */
export interface LostResult extends ResultFields, WithoutError {
  outcome: 'lost';
  exitCode: null;
  /** What was lost. Absent when Redis came back with an older state. */
  reason?: 'host-lost' | 'container-removed' | undefined;
}

/** The fleet failed: it was not run, or its shell was lost while it ran. */
export interface ErrorResult extends ResultFields {
  outcome: 'error';
  exitCode: null;
  /** What happened to its sandbox. Absent when nothing did. */
  reason?: 'oom' | 'disk' | 'container-removed' | undefined;
  /** The error; docs/errors.md lists the codes. */
  error: WireError;
  cancelReason?: undefined;
}

/** The sentence for a person about withheld output. */
export function describeBlocked({ type, reason }: BlockedOutput): string {
  return reason === 'matched'
    ? `Output blocked: detected ${type}.`
    : `Output blocked: the rule for ${type} could not keep up with the output.`;
}

/** The sentence for a person about a denial by the sandbox. */
export function describeDenied({ what, line }: SandboxDenied): string {
  const withheld = { files: 'access to a file', network: 'the network', 'system-call': 'a system call' }[what];
  return `The sandbox seems to have denied it ${withheld}: ${line}`;
}
