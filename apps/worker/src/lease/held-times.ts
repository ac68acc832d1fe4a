const REMEMBERED = 32;

/** How long the last sessions held a slot of this host: what whoever waits for one may expect. */
export interface HeldTimes {
  note(ms: number): void;
  /** Undefined before the first. */
  median(): number | undefined;
}

export function createHeldTimes(): HeldTimes {
  const last: number[] = [];
  return {
    note(ms) {
      last.push(Math.round(ms));
      if (last.length > REMEMBERED) last.shift();
    },
    median: () => last.toSorted((a, b) => a - b)[Math.floor(last.length / 2)],
  };
}
