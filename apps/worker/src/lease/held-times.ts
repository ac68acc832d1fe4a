const REMEMBERED = 32;

/** How long recent sessions held a slot of this host. Clients estimate from it how long a queued session will wait. */
export interface HeldTimes {
  record(ms: number): void;
  /** Returns the median in ms, or undefined before the first session has ended. */
  median(): number | undefined;
}

export function createHeldTimes(): HeldTimes {
  const last: number[] = [];
  return {
    record(ms) {
      last.push(Math.round(ms));
      if (last.length > REMEMBERED) last.shift();
    },
    median: () => last.toSorted((a, b) => a - b)[Math.floor(last.length / 2)],
  };
}
