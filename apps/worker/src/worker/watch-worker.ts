import { readFleetDemand } from '@shellfleet/placement';
import { ALIVE_MS } from '@shellfleet/protocol';
import type { DrivenBatches } from '../batches/driven-batches.ts';
import { serveMetrics } from '../metrics/metrics-server.ts';
import { WorkerGauges } from './measure-worker.ts';
import type { OpenWorker } from './open-worker.ts';

export interface WatchedWorker {
  /** Reports that the worker takes back its sessions no longer, and fetches others. It drives these batches. */
  started(batches: Pick<DrivenBatches, 'count'>): void;
  close(): Promise<void>;
}

/** Serves what a worker shows of itself, if it has a port for that. A ConfigError names a port that is taken. */
export async function watchWorker(worker: OpenWorker): Promise<WatchedWorker | undefined> {
  const { host } = worker;
  const { settings, metrics, redis, fleet, logger } = host;
  if (settings.metrics === undefined || metrics === undefined) return undefined;
  const { registry } = metrics;
  let driven: Pick<DrivenBatches, 'count'> | undefined;
  const reasons = () => [...(driven === undefined ? ['It starts.'] : []), ...whyNotReady(worker)];
  const gauges = new WorkerGauges(worker, metrics, () => reasons().length === 0);
  const server = await serveMetrics(
    settings.metrics,
    {
      contentType: registry.contentType,
      reasons,
      async metrics() {
        registry.set('shellfleet_batches_driven', driven?.count ?? 0);
        await gauges.measure();
        return registry.text();
      },
      scale: async () => (await readFleetDemand(redis, fleet))?.fleet,
    },
    logger,
  );
  return {
    started(batches) {
      driven = batches;
    },
    close: server.close,
  };
}

/** Returns why a worker takes no session, one sentence each. One whose slots are all taken has no reason. */
function whyNotReady({ isDraining, problems, settling, heartbeat }: OpenWorker): string[] {
  const silentMs = Date.now() - heartbeat.lastAt;
  return [
    ...(isDraining() ? ['It takes nothing new: it drains or stops.'] : []),
    ...(heartbeat.lastAt === 0 ? ['Redis has stored no heartbeat of it yet.'] : []),
    ...(heartbeat.lastAt > 0 && silentMs > ALIVE_MS
      ? [`Redis has stored no heartbeat of it for ${Math.floor(silentMs / 1_000)} s.`]
      : []),
    ...(settling.settled ? [] : ['Redis was away, and the hosts renew their leases first.']),
    ...problems(),
  ];
}
