import type { Fault, SeenResult } from '../history/history.ts';
import type { OperationHistory } from '../history/operation-history.ts';
import { type FaultKind, type Permit, PROMISES } from './promises.ts';

/** Time after the end of a fault in which its effects may still be seen: a lease ends, a client retries. */
const SETTLE_MS = 20_000;

/**
 * Time after its last heartbeat in which a host is still taken for alive, with the difference between the clocks of
 * client and fault.
 */
const UNHEARD_MS = 1_500;

/** Time that a host on a busy machine needs after a fault until it renews its leases again. */
const RECOVERY_MS = 2_500;

/** Code of a command whose sandbox could not be created. */
export const START_FAILED = 'SESSION_START_FAILED';

interface Interval {
  from: number;
  to: number;
}

/** Decides whether some fault permits a deviation. */
export class Permits {
  readonly #faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    this.#faults = faults.filter(({ notRun }) => notRun === undefined);
  }

  /**
   * Returns whether the session's shell may have been lost. `hostIds` are the hosts that it may have been on since its
   * last regular Result; it is empty when they are unknown.
   */
  shellLost({ session, leaseMs }: LosableSession, hostIds: ReadonlySet<string>, since: number, until: number): boolean {
    const byFault = this.#between(since, until).some(
      (fault) =>
        has(fault, 'every-shell') || has(fault, 'tail') || (has(fault, 'shell-of-session') && fault.target === session),
    );
    const hosts = hostIds.size > 0 ? [...hostIds] : this.#hosts();
    const isOver = ({ from, to }: Interval) => to - from >= leaseMs && from <= until && to + SETTLE_MS >= since;
    return byFault || hosts.some((host) => this.#away(host).some(isOver));
  }

  submitRefused(at: number): boolean {
    return this.#between(at, at).some((fault) => has(fault, 'submits-refused'));
  }

  sessionGone(at: number): boolean {
    return this.#between(at, at).some((fault) => has(fault, 'tail'));
  }

  expired(from: number, until: number): boolean {
    return this.tailLost(from, until) || this.#between(from, until).some((fault) => has(fault, 'results-expired'));
  }

  /** Returns whether a fault may have removed the oldest events of a stream after the time `from`. */
  streamCut(from: number): boolean {
    return this.#faults.some((fault) => has(fault, 'streams-cut') && fault.to + SETTLE_MS >= from);
  }

  /** Returns whether the submitter slept until the idempotency key had expired, and then repeated its submit. */
  keyForgotten({ submittedAt, acceptedAt }: OperationHistory): boolean {
    return this.#faults.some(
      (fault) => has(fault, 'results-expired') && submittedAt <= fault.from && acceptedAt >= fault.to,
    );
  }

  /**
   * Returns whether an older state of Redis may have replaced the state in which the operation was accepted, ran or
   * ended.
   */
  tailLost(from: number, until: number): boolean {
    return this.#faults.some(
      (fault) => has(fault, 'tail') && from <= fault.to && until >= (fault.restoredTo ?? fault.from),
    );
  }

  /**
   * Returns whether Redis may have forgotten the operation's begin while the host's worker was away and could not
   * declare it.
   */
  beginForgotten({ submittedAt, endedAt }: OperationHistory): boolean {
    return this.#faults.some((fault) => {
      const restoredTo = fault.restoredTo ?? fault.from;
      const isForgotten = has(fault, 'tail') && submittedAt <= fault.to && endedAt >= restoredTo;
      const wasDown = ({ from, to }: Fault) => from <= fault.to + RECOVERY_MS && to >= restoredTo;
      return isForgotten && this.#faults.some((other) => awayOf(other) === 'host' && wasDown(other));
    });
  }

  /**
   * Returns whether the operation was submitted when its host had just stopped. Until the heartbeat is too old, a
   * submit still starts commands in the host's name.
   */
  unheard({ submittedAt, acceptedAt }: OperationHistory): boolean {
    return this.#faults.some(
      (fault) =>
        awayOf(fault) === 'host' && acceptedAt >= fault.from - UNHEARD_MS && submittedAt <= fault.from + UNHEARD_MS,
    );
  }

  /** Returns whether a host may have had no room for a sandbox. */
  startRefused(from: number, until: number): boolean {
    return this.#between(from, until).some((fault) => has(fault, 'starts-refused'));
  }

  /**
   * Returns the intervals in which a host was out of reach. Faults that follow each other directly are merged. An
   * outage of Redis alone does not count.
   */
  #away(host: string): Interval[] {
    const own = this.#faults.filter((fault) => awayOf(fault) === 'host' && fault.target === host);
    const all = [...own, ...this.#faults.filter((fault) => awayOf(fault) === 'redis')].sort((a, b) => a.from - b.from);
    const merged: (Interval & { hasOwn: boolean })[] = [];
    for (const fault of all) {
      const hasOwn = own.includes(fault);
      const last = merged.at(-1);
      if (last === undefined || fault.from > last.to)
        merged.push({ from: fault.from, to: fault.to + RECOVERY_MS, hasOwn });
      else {
        last.to = Math.max(last.to, fault.to + RECOVERY_MS);
        last.hasOwn ||= hasOwn;
      }
    }
    return merged.filter(({ hasOwn }) => hasOwn);
  }

  #hosts(): string[] {
    return [...new Set(this.#faults.filter((fault) => awayOf(fault) === 'host').map(({ target }) => target))];
  }

  #between(from: number, until: number): Fault[] {
    return this.#faults.filter((fault) => fault.from <= until && fault.to + SETTLE_MS >= from);
  }
}

interface LosableSession {
  session: string;
  leaseMs: number;
}

const awayOf = ({ kind }: Fault) => PROMISES[kind as FaultKind].away;

function has({ kind }: Fault, permit: Permit): boolean {
  return PROMISES[kind as FaultKind].permits.includes(permit);
}

/** Returns whether a Result reports that shell or host was lost before or during the command. */
export function reportsLoss({ outcome, errorCode, shell }: SeenResult): boolean {
  return isCutShort({ outcome, errorCode }) || shell.state === 'lost';
}

/** Returns whether a Result is not the command's own, because its shell or host was lost. */
export function isCutShort({ outcome, errorCode }: { outcome: string; errorCode?: string | undefined }): boolean {
  const codes = ['CONTAINER_LOST', 'SESSION_LOST', 'SHELL_UNRESPONSIVE', START_FAILED];
  return outcome === 'lost' || (outcome === 'error' && codes.includes(errorCode ?? ''));
}

/** Returns whether the command may have run, though not necessarily to its end. */
export function mayHaveRun({ outcome, errorCode }: SeenResult): boolean {
  return !(outcome === 'error' && ['SESSION_LOST', START_FAILED].includes(errorCode ?? ''));
}

export const resultOf = ({ results }: OperationHistory): SeenResult | undefined => results[0];
