import type { HostServices } from './run/host-services.ts';
import type { Stop } from './session/hosting.ts';
import { closeWorker } from './worker/close-worker.ts';
import { openWorker, type WorkerOptions } from './worker/open-worker.ts';
import { runWorker } from './worker/run-worker.ts';
import { watchWorker } from './worker/watch-worker.ts';

export interface Worker {
  readonly hostId: string;
  /**
   * Takes no new work and waits `graceMs` for running work. `hand-over` leaves the shells alive, `end` ends them.
   * Returns how many sessions ended and how many did not.
   */
  close(how: Stop, graceMs: number): Promise<{ ended: number; left: number }>;
  /** Decides again about waiting entries, since what the host admits has changed. */
  admissionChanged(): void;
}

/** Starts the worker of a host. It serves the sessions that the host owned before, and others while it has slots. */
export async function createWorker(services: HostServices, options: WorkerOptions): Promise<Worker> {
  const open = await openWorker(services, options);
  const watched = await watchWorker(open);
  const running = await runWorker(open);
  watched?.started(running.batches);
  const { hostId, settings, logger } = services;
  logger.info({ slots: settings.slots }, 'worker.started');
  return {
    hostId,
    admissionChanged() {
      open.sessions.admissionChanged();
      void open.heartbeat.beatNow();
    },
    async close(how, graceMs) {
      try {
        return await closeWorker(open, running, how, graceMs);
      } finally {
        await watched?.close();
      }
    },
  };
}
