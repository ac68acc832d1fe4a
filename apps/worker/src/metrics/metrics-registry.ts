import { METRICS, type MetricLabel, type MetricName, type MetricNameOf } from '@shellfleet/protocol';
import type { Counter, Gauge, Histogram, Registry } from 'prom-client';

type Client = typeof import('prom-client');
export type LabelsOf<Name extends MetricName> = Record<MetricLabel<Name>, string>;

/** All metrics of METRICS, with their values in this process. */
export class MetricsRegistry {
  readonly #registry: Registry;
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #histograms = new Map<string, Histogram>();
  /** Last totals of `countTo`, by counter and labels. */
  readonly #totals = new Map<string, number>();

  private constructor({ Registry, Counter, Gauge, Histogram }: Client) {
    this.#registry = new Registry();
    const registers = [this.#registry];
    for (const [name, metric] of Object.entries(METRICS)) {
      const { type, help, labels } = metric;
      const described = { name, help, labelNames: [...labels], registers };
      if (type === 'counter') this.#counters.set(name, new Counter(described));
      else if (type === 'gauge') this.#gauges.set(name, new Gauge(described));
      else this.#histograms.set(name, new Histogram({ ...described, buckets: [...metric.buckets] }));
    }
  }

  /** Creates a registry. The library is loaded only here, so a worker without metrics never loads it. */
  static async load(): Promise<MetricsRegistry> {
    return new MetricsRegistry(await import('prom-client'));
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Returns all metrics in the text format of Prometheus. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  counter<Name extends MetricNameOf<'counter'>>(name: Name): Counter<MetricLabel<Name>> {
    return this.#counters.get(name) as Counter<MetricLabel<Name>>;
  }

  histogram<Name extends MetricNameOf<'histogram'>>(name: Name): Histogram<MetricLabel<Name>> {
    return this.#histograms.get(name) as Histogram<MetricLabel<Name>>;
  }

  /** Sets a gauge without labels. With null, which means that the value is not known, the gauge has no value. */
  set(name: MetricNameOf<'gauge'>, value: number | null): void {
    const gauge = this.#gauges.get(name);
    if (value === null) gauge?.remove();
    else gauge?.set(value);
  }

  /** Replaces all values of a gauge. */
  replace<Name extends MetricNameOf<'gauge'>>(name: Name, values: Iterable<[LabelsOf<Name>, number]>): void {
    const gauge = this.#gauges.get(name);
    gauge?.reset();
    for (const [labels, value] of values) gauge?.set(labels, value);
  }

  /** Raises a counter to a total that is counted elsewhere. A total that shrinks leaves the counter as it is. */
  countTo<Name extends MetricNameOf<'counter'>>(name: Name, labels: LabelsOf<Name>, total: number): void {
    const key = JSON.stringify([name, labels]);
    const before = this.#totals.get(key) ?? 0;
    this.#totals.set(key, Math.max(before, total));
    this.#counters.get(name)?.inc(labels, Math.max(0, total - before));
  }
}
