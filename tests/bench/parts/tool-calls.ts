import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Fleet } from '@shellfleet/client';
import { createSealKey } from '@shellfleet/sealing';
import { until } from '../../support/until.ts';
import { percentile, type Spread, toSpread } from '../measure/spread.ts';
import { startWorker, type WorkerOptions } from '../rows/worker-process.ts';

/**
 * Measures calls of a tool that does nothing, one at a time, on a worker of its own. Returns the median of each round,
 * in milliseconds.
 */
export async function measureToolCalls(options: WorkerOptions, rounds: number, calls: number): Promise<Spread> {
  const sealKeys = [createSealKey()];
  const tools = [fileURLToPath(new URL('./noop-tool.ts', import.meta.url))];
  const worker = await startWorker({ ...options, tools }, sealKeys);
  const ended = once(worker, 'exit');
  try {
    const { redisUrl, namespace } = options;
    await using fleet = await Fleet.connect({ redisUrl, namespace, sealKeys });
    const call = async (): Promise<number> => {
      const from = performance.now();
      const result = await fleet.tools.call('noop', { number: 1 });
      if (!result.ok) throw new Error(`a tool call failed: ${result.error.message}`);
      return performance.now() - from;
    };
    await until(
      () => fleet.tools.list(),
      (tools) => tools.length > 0,
    );
    for (let turn = 0; turn < 3; turn++) await call();
    const medians: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const times: number[] = [];
      for (let turn = 0; turn < calls; turn++) times.push(await call());
      medians.push(percentile(times, 0.5));
    }
    return toSpread(medians);
  } finally {
    worker.kill('SIGINT');
    await ended;
  }
}
