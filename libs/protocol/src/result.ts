import type { WireError } from './errors.ts';
import type { Receipt } from './receipt.ts';

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
 * How a command ended. `success`, `failure`: by itself, with exit code 0 or another one, or by a signal. `timeout`,
 * `cancellation`: it was stopped, or never started. `denial`: rules or an approver denied it, and nothing ran.
 * `blocked`: it ran, and a redaction rule withholds its output. `lost`: it started, and its end is not known. `error`:
 * the fleet failed.
 */
export type Outcome = (typeof OUTCOMES)[number];

/** Everything known about an ended command. The `outcome` tells which of the types it is. */
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
  /** Id of the command, `<session>.<ULID>`, for `fleet.command`. */
  commandId: string;
  /** The session in which the command ran. */
  sessionId: string;
  /**
   * Signal that ended the command, such as `SIGKILL`, if its shell noticed the signal. A signal that ended a program is
   * reported as exit code 128 plus its number.
   */
  signal: string | null;
  /** Redacted stdout, within the session's `output.maxBytes` and `output.maxLines`, in `encoding` of the options. */
  stdout: string;
  /** Redacted stderr, within the same limits. */
  stderr: string;
  /** Both streams in the order in which redaction released them. */
  output: string;
  /** Whether a text above is shorter than the command's output. `command.log` has the rest. */
  truncated: { bytes: boolean; lines: boolean };
  /** Bytes and lines of the command's output, after redaction. */
  totals: { stdoutBytes: number; stderrBytes: number; stdoutLines: number; stderrLines: number };
  /** Number of redactions, by the type of their rule. It never contains a redacted value. */
  redactions: Record<string, number>;
  /** Whether the submit found this command by its idempotency key, so that no new command was accepted. */
  deduplicated: boolean;
  /**
   * State of the shell afterwards. `kept`; `partial`: some of it could not be saved; `lost`: the next command gets a
   * fresh one. `reason` says why, in words. `epoch` counts the session's shells from 1; it is 0 when no shell is
   * concerned.
   */
  shell: { state: 'kept' | 'partial' | 'lost'; reason?: string | undefined; epoch: number };
  /**
   * Times in ms from acceptance: the wait for turn and slot, the opening of the shell, the run, and the sum of the
   * three.
   */
  timings: { queuedMs: number; startMs: number; runMs: number; totalMs: number };
  /** Where its time went, also after its end. Absent only if the record of the command was damaged. */
  receipt?: Receipt | undefined;
  /** What the sandbox used while the command ran. Absent when it did not run, or the kernel does not count it. */
  usage?: Usage | undefined;
  /** Id of the host that ran the command, or null. */
  hostId: string | null;
  /** Digest of the container's image, `sha256:…`. Absent without a container. */
  imageDigest?: string | undefined;
  /** Number of starts, if more than one: with `retry: 'idempotent'`, or with a second attempt outside the sandbox. */
  attempts?: number | undefined;
  /** True when the command ran outside the sandbox of its session. */
  outside?: true | undefined;
  /** Denial by the sandbox, guessed from the output. Present only for a `failure` inside the sandbox. */
  denied?: SandboxDenied | undefined;
  /** Why a requested second attempt outside the sandbox did not take place, in words. */
  refused?: string | undefined;
  /** Exit code and last 500 bytes of the first attempt. The rest of the Result is about the second attempt. */
  firstAttempt?: FirstAttempt | undefined;
  /** The rule that withholds further output. Always set for `blocked`. A stopped or lost command may have it too. */
  blocked?: BlockedOutput | undefined;
}

/** What the sandbox of a session used while a command ran, as the kernel counts it for the whole sandbox. */
export interface Usage {
  /**
   * Processor time in ms from the start of the command to its end, of all processes of the sandbox: also of those that
   * earlier commands left in the background, of terminals and of file operations.
   */
  cpuMs: number;
  /**
   * Highest memory of the sandbox in bytes, from the start of the sandbox to the end of the command. It includes cached
   * files, so it may exceed what the processes allocated. A command that did not need more than an earlier one of its
   * sandbox has the same peak.
   */
  peakMemoryBytes: number;
}

/** A denial by the sandbox, guessed from text that a program may also print without one. */
export interface SandboxDenied {
  /** What the sandbox withheld. */
  what: 'files' | 'network' | 'system-call';
  /** Line of the output that reports the denial. */
  line: string;
  /** Whether a person would be asked about the same command with `escalate`. */
  mayAsk: boolean;
}

/** How the first attempt of a command ended. */
export interface FirstAttempt {
  /** Exit code. */
  exitCode: number | null;
  /** End of the output, redacted. */
  output: string;
}

/** Why output is withheld. */
export interface BlockedOutput {
  /** Type of the rule. */
  type: string;
  /**
   * Reason of the block. `matched`: the rule found something. `too-slow`: the rule could not keep up with the output.
   */
  reason: 'matched' | 'too-slow';
}

/**
 * Fields that only other outcomes have. They are declared as absent, so that they can be read without checking the
 * outcome.
 */
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
  /** 1 to 255. If a signal ended the command, 128 plus the number of the signal. */
  exitCode: number;
  /**
   * How the command ended. The kernel killed one of its processes because the sandbox reached its limit of memory
   * (`oom`), or because the memory of the whole host ran out (`host-memory`).
   */
  reason: 'exited' | 'signalled' | 'oom' | 'host-memory';
}

/** Result of a command that was stopped at a limit of time, or had not started by its start deadline. */
export interface TimeoutResult extends ResultFields, WithoutError {
  outcome: 'timeout';
  /** Null, since there is no exit code. */
  exitCode: null;
  /** The limit: `timeoutMs` (`wall`), `noOutputTimeoutMs`, or `startDeadlineMs` (`not-started`: it was not run). */
  reason: 'wall' | 'no-output' | 'not-started';
  /** The limit in ms. Absent when the command had not started. */
  limitMs?: number | undefined;
}

/** Result of a command that was cancelled, before or after its start. */
export interface CancellationResult extends ResultFields {
  outcome: 'cancellation';
  /** Null, since there is no exit code. */
  exitCode: null;
  reason: 'cancelled';
  /** Why the command was cancelled: the words of the caller that cancelled it, or that its host was shut down. */
  cancelReason?: string | undefined;
  error?: undefined;
}

/** Result of a command that rules or an approver denied, so that nothing ran. `stderr` says why. */
export interface DenialResult extends ResultFields, WithoutError {
  outcome: 'denial';
  /** Null, since there is no exit code. */
  exitCode: null;
  /** What denied it: rules, or a person. */
  reason: 'rules' | 'approver';
}

/** Result of a command that ended by itself, and whose output a redaction rule withholds. */
export interface BlockedResult extends ResultFields, WithoutError {
  outcome: 'blocked';
  /** Exit code of the command, 0 to 255. */
  exitCode: number;
  /**
   * How the command ended. The kernel killed one of its processes because the sandbox reached its limit of memory
   * (`oom`), or because the memory of the whole host ran out (`host-memory`).
   */
  reason: 'exited' | 'signalled' | 'oom' | 'host-memory';
  /** The rule that withholds further output. */
  blocked: BlockedOutput;
}

/** Result of a command that started, and whose end is not known. It may have taken effect, and is not run again. */
export interface LostResult extends ResultFields, WithoutError {
  outcome: 'lost';
  /** Null, since there is no exit code. */
  exitCode: null;
  /** What was lost. Absent when Redis came back with an older state. */
  reason?: 'host-lost' | 'container-removed' | undefined;
}

/** Result when the fleet failed: the command was not run, or its shell was lost while it ran. */
export interface ErrorResult extends ResultFields {
  outcome: 'error';
  /** Null, since there is no exit code. */
  exitCode: null;
  /** What happened to the sandbox. Absent when nothing happened to it. */
  reason?: 'oom' | 'host-memory' | 'disk' | 'container-removed' | undefined;
  /** The error; docs/errors.md lists the codes. */
  error: WireError;
  cancelReason?: undefined;
}

/** Returns the sentence for a person about withheld output. */
export function describeBlocked({ type, reason }: BlockedOutput): string {
  return reason === 'matched'
    ? `Output blocked: detected ${type}.`
    : `Output blocked: the rule for ${type} could not keep up with the output.`;
}

/** Returns the sentence for a person about a denial by the sandbox. */
export function describeDenied({ what, line }: SandboxDenied): string {
  const withheld = { files: 'access to a file', network: 'the network', 'system-call': 'a system call' }[what];
  return `The sandbox seems to have denied it ${withheld}: ${line}`;
}
