import type { Row, Script } from '../rows/row.ts';
import { percentile } from './spread.ts';

/** Measures the latency of one command at a time, from the call to its result, in milliseconds. */
export async function measureIdle(row: Row, script: Script, samples: number): Promise<{ p50: number; p99: number }> {
  const latencies: number[] = [];
  for (let turn = 0; turn < samples; turn++) {
    const from = performance.now();
    await row.one(script, turn);
    latencies.push(performance.now() - from);
  }
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}
