export interface RepeatOptions {
  everyMs: number;
  /** Receives the error of a failed round, after which the rounds continue. Without `onError`, no round may fail. */
  onError?: (error: unknown) => void;
  /** Whether a round may begin now. Default: always. */
  mayBegin?: () => boolean;
}

export interface Repetition {
  /**
   * Begins a round now, even after `close`, or joins the round under way. Resolves at the end of the round, and never
   * rejects.
   */
  now(): Promise<void>;
  /** Begins no more rounds on the timer. Resolves when the round under way has ended. */
  close(): Promise<void>;
}

/**
 * Calls `round` once per interval until it is closed, first after one interval. A call that is due while another runs
 * is left out.
 */
export function repeat(round: () => unknown, { everyMs, onError, mayBegin }: RepeatOptions): Repetition {
  let underWay: Promise<void> | undefined;
  const run = async () => {
    await round();
  };
  const now = () => {
    if (underWay === undefined && mayBegin?.() !== false)
      underWay = run()
        .catch(onError)
        .finally(() => {
          underWay = undefined;
        });
    return underWay ?? Promise.resolve();
  };
  const timer = setInterval(() => void now(), everyMs);
  return {
    now,
    async close() {
      clearInterval(timer);
      await underWay;
    },
  };
}
