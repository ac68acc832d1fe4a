/** Median and range of one figure over several rounds. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

export function toSpread(values: readonly number[]): Spread {
  if (values.length === 0) throw new Error('no value was measured');
  return { median: percentile(values, 0.5), min: Math.min(...values), max: Math.max(...values) };
}

/** The smallest value that at least this share of all values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
