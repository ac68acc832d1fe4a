/**
 * What a part of a command's time went into.
 * - `slot`: its session waited for a slot of a host.
 * - `earlier`: earlier commands of its session came first.
 * - `approval`: a person was asked.
 * - `image`: its host pulled the image.
 * - `opening`: its shell was opened: the sandbox, and the startup commands.
 * - `attempt`: an earlier attempt of the command.
 * - `waiting`: no cause is known. The fleet itself needs some ms, and a host or a Redis that does not answer more.
 * - `running`: it ran.
 * - `unknown`: it had started, and it is not known how long it ran.
 * - `storing`: its last output and its Result were stored.
 */
export type ReceiptStep =
  | 'slot'
  | 'earlier'
  | 'approval'
  | 'image'
  | 'opening'
  | 'attempt'
  | 'waiting'
  | 'running'
  | 'unknown'
  | 'storing';

/** A part of the time of a command. */
export interface ReceiptPart {
  /** What the time went into. */
  step: ReceiptStep;
  /** Its length in ms. */
  ms: number;
  /** The clock that measured it: that of Redis, or that of the command's host. */
  clock: 'redis' | 'host';
}

/** Where the time of a command went, from its acceptance until its Result was stored. */
export interface Receipt {
  /** When the command was accepted; ISO 8601, by the clock of Redis. */
  acceptedAt: string;
  /** When it was started last; ISO 8601, by the clock of Redis. Absent if it never was. */
  startedAt?: string;
  /** When its Result was stored; ISO 8601, by the clock of Redis. */
  storedAt: string;
  /** Time in ms from its acceptance until its Result was stored, by the clock of Redis. */
  totalMs: number;
  /**
   * Time in ms from its start on the host to its first output, by the clock of the host. Absent if it had no output, or
   * if its worker was replaced while it ran.
   */
  firstOutputMs?: number;
  /** The parts of that time, in their order, without those of 0 ms. Their sum is `totalMs`, but for rounding. */
  parts: ReceiptPart[];
}
