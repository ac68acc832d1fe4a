import { newResult, type ResultEnd, type WireResult } from '@shellfleet/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { MetricsRegistry } from './metrics-registry.ts';
import { createWorkerMetrics, type WorkerMetrics } from './worker-metrics.ts';

let metrics: WorkerMetrics;
beforeEach(async () => {
  metrics = createWorkerMetrics(await MetricsRegistry.load());
});

const resultOf = (end: ResultEnd, more: Partial<WireResult> = {}): WireResult =>
  newResult(end, {
    shell: { state: 'kept', epoch: 1 },
    timings: { queuedMs: 100, startMs: 50, runMs: 400, totalMs: 550 },
    hostId: 'h1',
    ...more,
  });

/** Returns the value of a series, as Prometheus would read it. */
async function readSeries(series: string): Promise<number | undefined> {
  metrics.addCounts();
  const line = (await metrics.registry.text()).split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

describe('the metrics of a worker', () => {
  test('count a command by outcome, with its times, output and findings', async () => {
    const totals = { stdoutBytes: 10, stderrBytes: 3, stdoutLines: 1, stderrLines: 1 };
    const redactions = { email: 2, password: 1 };
    metrics.entryEnded(
      'command',
      resultOf({ outcome: 'success', exitCode: 0, reason: 'exited' }, { totals, redactions }),
    );
    expect(await readSeries('shellfleet_entries_total{kind="command",outcome="success"}')).toBe(1);
    expect(await readSeries('shellfleet_command_duration_seconds_bucket{le="0.25",outcome="success"}')).toBe(0);
    expect(await readSeries('shellfleet_command_duration_seconds_bucket{le="0.5",outcome="success"}')).toBe(1);
    expect(await readSeries('shellfleet_command_wait_seconds_sum{outcome="success"}')).toBe(0.15);
    expect(await readSeries('shellfleet_output_bytes_total{stream="stderr"}')).toBe(3);
    expect(await readSeries('shellfleet_redactions_total')).toBe(3);
  });

  test('count denials by who denied, and errors by code', async () => {
    const error = { code: 'IMAGE_UNAVAILABLE', message: 'm', retryable: true, context: {} } as const;
    metrics.entryEnded('file', resultOf({ outcome: 'denial', reason: 'approver' }));
    metrics.entryEnded('command', resultOf({ outcome: 'error', error }));
    expect(await readSeries('shellfleet_denials_total{by="approver"}')).toBe(1);
    expect(await readSeries('shellfleet_denials_total{by="rules"}')).toBe(0);
    expect(await readSeries('shellfleet_errors_total{code="IMAGE_UNAVAILABLE"}')).toBe(1);
    expect(await readSeries('shellfleet_command_duration_seconds_count{outcome="denial"}')).toBe(0);
  });

  test('count a command that was held for a person by its end only', async () => {
    metrics.heldEnded(resultOf({ outcome: 'denial', reason: 'approver' }));
    expect(await readSeries('shellfleet_entries_total{kind="command",outcome="denial"}')).toBe(1);
    expect(await readSeries('shellfleet_denials_total{by="approver"}')).toBe(1);
    expect(await readSeries('shellfleet_command_wait_seconds_count{outcome="denial"}')).toBe(0);
  });

  test('have series of value 0 for each outcome before the first command', async () => {
    expect(await readSeries('shellfleet_command_duration_seconds_count{outcome="lost"}')).toBe(0);
    expect(await readSeries('shellfleet_egress_requests_total{verdict="refused"}')).toBe(0);
  });

  test('follow a total that is counted elsewhere, and stay when it shrinks', async () => {
    const { registry } = metrics;
    const labels = { image: 'default', network: 'restricted' };
    for (const total of [3, 2, 4]) registry.countTo('shellfleet_pool_warm_total', labels, total);
    expect(await readSeries('shellfleet_pool_warm_total{image="default",network="restricted"}')).toBe(4);
  });

  test('have no value for what is not known', async () => {
    metrics.registry.set('shellfleet_disk_free_bytes', 5);
    expect(await readSeries('shellfleet_disk_free_bytes')).toBe(5);
    metrics.registry.set('shellfleet_disk_free_bytes', null);
    expect(await readSeries('shellfleet_disk_free_bytes')).toBeUndefined();
  });
});
