import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Fleet } from '@shellfleet/client';
import { createSealKey } from '@shellfleet/sealing';
import { until } from '../../support/until.ts';
import { type Spread, toSpread } from '../measure/spread.ts';
import { startWorker, type WorkerOptions } from '../rows/worker-process.ts';

const READY = 2;

/**
 * Measures the starts of sessions from a pool, one at a time, on a worker of its own: from nothing to the result of the
 * first command, in milliseconds.
 */
export async function measureWarmStarts(options: WorkerOptions, times: number): Promise<Spread> {
  const sealKeys = [createSealKey()];
  await mkdir(options.directory, { recursive: true, mode: 0o700 });
  const configPath = join(options.directory, 'config.yaml');
  await writeFile(configPath, JSON.stringify({ pools: [{ min: READY, max: READY }] }));
  const worker = await startWorker({ ...options, configPath }, sealKeys);
  const ended = once(worker, 'exit');
  try {
    const { redisUrl, namespace } = options;
    await using fleet = await Fleet.connect({ redisUrl, namespace, sealKeys });
    const taken: number[] = [];
    let closedAt = 0;
    // The first one compiles the code and is left out.
    for (let turn = 0; turn <= times; turn++) {
      // A heartbeat from before the last session has the number of that time.
      await until(
        () => fleet.hosts(),
        ([host]) => host?.pools?.[0]?.ready === READY && Date.parse(host.seenAt) > closedAt,
      );
      const from = performance.now();
      const session = await fleet.session(`warm-${turn}`);
      const { outcome } = await session.run('echo hi');
      taken.push(performance.now() - from);
      const { start } = await session.info();
      if (outcome !== 'success' || start !== 'warm')
        throw new Error(`a session started ${start} and ended as ${outcome}`);
      await session.close();
      closedAt = Date.now();
    }
    return toSpread(taken.slice(1));
  } finally {
    worker.kill('SIGINT');
    await ended;
  }
}
