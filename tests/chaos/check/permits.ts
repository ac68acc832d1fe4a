import type { Fault, SeenResult } from '../history/history.ts';
import type { OperationHistory } from '../history/operation-history.ts';
import { type FaultKind, type Permit, PROMISES } from './promises.ts';

/** Effects may be seen this long after the fault was healed: a lease that ends, a client that retries. */
const SETTLE_MS = 20_000;

/** A host may be relied on for this long after its last heartbeat; and a client and the fault do not see the same moment. */
const UNHEARD_MS = 1_500;

/** What a host needs after a fault, on a busy machine, until it renews its leases again. */
const RECOVERY_MS = 2_500;

/** The code of a command that waited for a sandbox that could not be made. */
export const START_FAILED = 'SESSION_START_FAILED';

interface Interval {
  from: number;
  to: number;
}

/** Answers whether some fault permits a deviation. */
export class Permits {
  readonly #faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    this.#faults = faults.filter(({ notRun }) => notRun === undefined);
  }

  /** `hostIds`: the hosts that the session may have been on since it was last seen in order; none when that is not known. */
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

  /** Whether the oldest entries of a stream may have been removed after `from`. */
  streamCut(from: number): boolean {
    return this.#faults.some((fault) => has(fault, 'streams-cut') && fault.to + SETTLE_MS >= from);
  }

  /** Whether its submitter fell asleep before it had the answer, and repeated it when its idempotency key was forgotten. */
  keyForgotten({ submittedAt, acceptedAt }: OperationHistory): boolean {
    return this.#faults.some(
      (fault) => has(fault, 'results-expired') && submittedAt <= fault.from && acceptedAt >= fault.to,
    );
  }

  /** Whether a state in which the operation was accepted, ran or ended may have been replaced by an older one. */
  tailLost(from: number, until: number): boolean {
    return this.#faults.some(
      (fault) => has(fault, 'tail') && from <= fault.to && until >= (fault.restoredTo ?? fault.from),
    );
  }

  /** Whether Redis may have forgotten that the operation began, on a host whose worker was not there to say so. */
  beginForgotten({ submittedAt, endedAt }: OperationHistory): boolean {
    return this.#faults.some((fault) => {
      const restoredTo = fault.restoredTo ?? fault.from;
      const isForgotten = has(fault, 'tail') && submittedAt <= fault.to && endedAt >= restoredTo;
      const wasDown = ({ from, to }: Fault) => from <= fault.to + RECOVERY_MS && to >= restoredTo;
      return isForgotten && this.#faults.some((other) => awayOf(other) === 'host' && wasDown(other));
    });
  }

  /** Whether it was submitted when its host had just stopped to answer: until its heartbeat is too old, it starts in the host's name. */
  unheard({ submittedAt, acceptedAt }: OperationHistory): boolean {
    return this.#faults.some(
      (fault) =>
        awayOf(fault) === 'host' && acceptedAt >= fault.from - UNHEARD_MS && submittedAt <= fault.from + UNHEARD_MS,
    );
  }

  /** Whether a host may have had no room for a sandbox. */
  startRefused(from: number, until: number): boolean {
    return this.#between(from, until).some((fault) => has(fault, 'starts-refused'));
  }

  /** When a host was out of reach, faults that followed each other at once taken together. Redis alone counts for none. */
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

/** The Result of a command whose shell, or host, was lost before or while it ran. */
export function reportsLoss({ outcome, errorCode, shell }: SeenResult): boolean {
  return isCutShort({ outcome, errorCode }) || shell.state === 'lost';
}

/** A Result that is not the command's own, because its shell or host was lost. */
export function isCutShort({ outcome, errorCode }: { outcome: string; errorCode?: string | undefined }): boolean {
  const codes = ['CONTAINER_LOST', 'SESSION_LOST', 'SHELL_UNRESPONSIVE', START_FAILED];
  return outcome === 'lost' || (outcome === 'error' && codes.includes(errorCode ?? ''));
}

/** The command may have run, but not necessarily to its end. */
export function mayHaveRun({ outcome, errorCode }: SeenResult): boolean {
  return !(outcome === 'error' && ['SESSION_LOST', START_FAILED].includes(errorCode ?? ''));
}

export const resultOf = ({ results }: OperationHistory): SeenResult | undefined => results[0];
