/** A call of ioredis, as far as its deadline concerns it. */
export interface WaitingCall {
  isSettled: boolean;
}

/** A multiple of this is counted. Of time in which this process is busy it counts as one. */
const STEP_MS = 100;

/**
 * Deadlines of the calls on one connection, which count only time in which this process could have read a reply. Node runs
 * timers before it reads replies, so a timer for each call would fail calls that Redis has answered, after a second of work
 * without a pause. One timer serves all calls.
 */
export class CallDeadlines<Call extends WaitingCall> {
  readonly #onLate: (call: Call) => void;
  /** In the order of their beginning. */
  #waiting: { call: Call; until: number }[] = [];
  #steps = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(onLate: (call: Call) => void) {
    this.#onLate = onLate;
  }

  begin(call: Call, ms: number): void {
    // Replies come in the order of the calls, so what has settled is nearly always at the front.
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
