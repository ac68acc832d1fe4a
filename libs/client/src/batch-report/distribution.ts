import type { NumberColumn } from './number-column.ts';

/** Values in a bin: `from` ≤ value < `to`, and in the last bin also `to`. */
interface HistogramBin {
  from: number;
  to: number;
  count: number;
}

/** How the values of a measure are distributed over the tasks. */
export interface Distribution {
  /** Number of tasks with a value. */
  count: number;
  sum: number;
  mean: number;
  least: number;
  median: number;
  p90: number;
  p99: number;
  most: number;
  bins: HistogramBin[];
  /** Whether each bin is wider than the one before it by a factor. */
  isLogarithmic: boolean;
}

/** Bins of a histogram, at most. */
const MOST_BINS = 30;

/** A greatest value of more medians than this makes equal bins useless: nearly all values would be in the first. */
const LOGARITHMIC_FROM = 12;

/** Returns the distribution of the values, or undefined without a value. */
export function distributionOf(values: NumberColumn): Distribution | undefined {
  const sorted = values.sorted();
  const [least] = sorted;
  const most = sorted.at(-1);
  if (least === undefined || most === undefined) return undefined;
  const sum = sorted.reduce((total, value) => total + value, 0);
  const median = quantile(sorted, 0.5);
  const isLogarithmic = most > LOGARITHMIC_FROM * Math.max(median, most / 1e6) && median >= 0;
  return {
    ...{ count: sorted.length, sum, mean: sum / sorted.length },
    ...{ least, median, p90: quantile(sorted, 0.9), p99: quantile(sorted, 0.99), most },
    ...{ bins: countInBins(sorted, isLogarithmic ? logarithmicEdges(sorted) : equalEdges(least, most)), isLogarithmic },
  };
}

/** Returns a quantile of sorted values, interpolated between the two next to it. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const low = sorted[below] ?? Number.NaN;
  const high = sorted[below + 1] ?? low;
  return low + (high - low) * (place - below);
}

/** Returns the edges of bins of one width, 1, 2 or 5 times a power of ten. */
function equalEdges(least: number, most: number): number[] {
  const rough = (most - least) / MOST_BINS;
  if (rough === 0) return [least, most];
  const power = 10 ** Math.floor(Math.log10(rough));
  const width = power * ([1, 2, 5, 10].find((step) => step * power >= rough) ?? 10);
  const first = Math.floor(least / width);
  // A value on the last edge belongs to the last bin.
  const last = Math.max(first + 1, Math.ceil(most / width));
  return Array.from({ length: last - first + 1 }, (_, index) => round((first + index) * width));
}

/** Returns the edges of bins that are each wider than the one before it. Below the first power of ten is one bin. */
function logarithmicEdges(sorted: Float64Array): number[] {
  const most = sorted.at(-1) ?? 0;
  const positive = sorted.find((value) => value > 0) ?? most;
  // Eight powers of ten are enough to look at. What is smaller is in the first bin.
  const lowest = Math.max(Math.floor(Math.log10(positive)), Math.ceil(Math.log10(most)) - 8);
  const highest = Math.ceil(Math.log10(most));
  const powers = Math.max(1, highest - lowest);
  const steps = 10 * Math.log10(most / positive) <= MOST_BINS ? [1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8] : [1, 2, 5];
  const edges = Array.from({ length: powers }, (_, index) => steps.map((step) => round(step * 10 ** (lowest + index))));
  const all = [...edges.flat(), 10 ** highest];
  const needed = all.findIndex((edge) => edge >= most);
  const upTo = needed === -1 ? all : all.slice(0, Math.max(2, needed + 1));
  const skipped = upTo.findLastIndex((edge) => edge <= positive);
  const [least = 0] = sorted;
  const used = upTo.slice(Math.min(Math.max(0, skipped), upTo.length - 2));
  return least < (used[0] ?? 0) ? [0, ...used] : used;
}

function countInBins(sorted: Float64Array, edges: readonly number[]): HistogramBin[] {
  const bins = edges.slice(1).map((to, index) => ({ from: edges[index] ?? 0, to, count: 0 }));
  let at = 0;
  for (const value of sorted) {
    while (at < bins.length - 1 && value >= (bins[at]?.to ?? 0)) at++;
    const bin = bins[at];
    if (bin !== undefined) bin.count++;
  }
  return bins;
}

/** Removes what binary fractions add to an edge, such as 0.30000000000000004. */
const round = (value: number) => Number(value.toPrecision(12));
