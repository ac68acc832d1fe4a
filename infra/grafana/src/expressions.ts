import type { MetricName, MetricNameOf } from '@shellfleet/protocol';

// Builders of PromQL whose metrics exist. `selector` is what follows a name, such as `{job="fleet"}`.

/** Returns the sum of the growth of a counter per second, by labels. */
export const rateOf = (
  name: MetricNameOf<'counter'> | `${MetricNameOf<'histogram'>}_count`,
  { by = [], within, selector = '' }: { by?: readonly string[]; within: string; selector?: string },
): string => `sum${byLabels(by)} (rate(${name}${selector}[${within}]))`;

/** Returns a quantile of a histogram over the time `within`, by labels. */
export const quantileOf = (
  quantile: number,
  name: MetricNameOf<'histogram'>,
  { by = [], within, selector = '' }: { by?: readonly string[]; within: string; selector?: string },
): string =>
  `histogram_quantile(${quantile}, sum by (${['le', ...by].join(', ')}) (rate(${name}_bucket${selector}[${within}])))`;

/** Returns a value of a metric that is the same at each worker, or the sum, least or greatest of all workers. */
export const aggregateOf = (
  how: 'sum' | 'min' | 'max',
  name: MetricName,
  { by = [], selector = '' }: { by?: readonly string[]; selector?: string } = {},
): string => `${how}${byLabels(by)} (${name}${selector})`;

const byLabels = (labels: readonly string[]) => (labels.length === 0 ? '' : ` by (${labels.join(', ')})`);
