/** Median and range of one figure over several rounds. */
export interface Spread {
  median: number;
  min: number;
  max: number;
  /** the figure of each round, in order */
  rounds: readonly number[];
}

/**
 * The ratio of two medians, and the range of the ratios of each round. Both figures of a round were measured within
 * seconds.
 */
export interface Ratio {
  value: number;
  min: number;
  max: number;
}

export function toSpread(rounds: readonly number[]): Spread {
  if (rounds.length === 0) throw new Error('no value was measured');
  return { median: percentile(rounds, 0.5), min: Math.min(...rounds), max: Math.max(...rounds), rounds };
}

export function toRatio(dividend: Spread, divisor: Spread): Ratio {
  const each = dividend.rounds.flatMap((value, round) => {
    const other = divisor.rounds[round];
    return other === undefined ? [] : [value / other];
  });
  return { value: dividend.median / divisor.median, min: Math.min(...each), max: Math.max(...each) };
}

/** Returns the smallest value that at least this share of all values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
