/** Why an idle session looks up. */
type WakeReason = 'bell' | 'state' | 'shell-gone' | 'draining' | 'poll';

/** A session's doorbell: rings are kept until somebody waits, so none is lost between two looks. */
export interface Wake {
  ring(reason: WakeReason): void;
  /** Resolves with every reason that came since the last call, at the latest after `pollMs` (then `poll`). */
  wait(pollMs: number): Promise<Set<WakeReason>>;
}

export function createWake(): Wake {
  let rung = new Set<WakeReason>();
  let waiting: (() => void) | undefined;

  const collect = () => {
    const reasons = rung;
    rung = new Set();
    return reasons;
  };

  return {
    ring(reason) {
      rung.add(reason);
      waiting?.();
    },
    async wait(pollMs) {
      if (rung.size === 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        const timer = setTimeout(() => {
          rung.add('poll');
          resolve();
        }, pollMs);
        waiting = resolve;
        await promise;
        waiting = undefined;
        clearTimeout(timer);
      }
      return collect();
    },
  };
}
