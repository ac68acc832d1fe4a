/** The part of an ioredis command that its deadline needs. */
export interface WaitingCall {
  isSettled: boolean;
}

/** Interval of the timer. A longer pause of this process counts as one interval. */
const STEP_MS = 100;

/**
 * Deadlines of the calls on one connection. They count only time in which this process could have read replies: Node
 * runs timers first, so after a busy second a timer per call would fail calls that Redis has answered.
 */
export class CallDeadlines<Call extends WaitingCall> {
  readonly #onLate: (call: Call) => void;
  /** Calls in the order in which they began. */
  #waiting: { call: Call; until: number }[] = [];
  #steps = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(onLate: (call: Call) => void) {
    this.#onLate = onLate;
  }

  begin(call: Call, ms: number): void {
    // Replies come in call order, so settled calls are nearly always at the front.
    while (this.#waiting[0]?.call.isSettled) this.#waiting.shift();
    this.#waiting.push({ call, until: this.#steps + Math.ceil(ms / STEP_MS) + 1 });
    this.#timer ??= setInterval(() => this.#step(), STEP_MS).unref();
  }

  #step(): void {
    this.#steps += 1;
    const waiting = this.#waiting.filter(({ call }) => !call.isSettled);
    this.#waiting = waiting.filter(({ until }) => until > this.#steps);
    for (const { call, until } of waiting) if (until <= this.#steps) this.#onLate(call);
    if (this.#waiting.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
