import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestWorker } from '../../support/start-fleet.ts';
import { type Injection, pickWorker, type Stage } from './stage.ts';
import type { HookOrder } from './worker-hooks.ts';

const HOUR_MS = 3_600_000;
const START_AGAIN_AFTER_MS = 300;

/** Ends a worker, and starts a new one when the fault is healed. */
const end =
  (signal: NodeJS.Signals): Injection =>
  async (stage, choice) => {
    const worker = pickWorker(stage, choice);
    if (stage.down.has(worker.hostId)) return undefined;
    stage.down.add(worker.hostId);
    await worker.stop(signal);
    return { target: worker.hostId, heal: () => startAgain(stage, worker) };
  };

/** Starts a worker repeatedly, like a supervisor: a worker that finds no Redis at its start may end. */
async function startAgain(stage: Stage, worker: TestWorker): Promise<void> {
  for (;;) {
    const started = await worker.start().then(
      () => true,
      () => false,
    );
    if (started) break;
    await delay(START_AGAIN_AFTER_MS);
  }
  stage.down.delete(worker.hostId);
}

const stop: Injection = async (stage, choice) => {
  const worker = pickWorker(stage, choice);
  if (stage.down.has(worker.hostId)) return undefined;
  stage.down.add(worker.hostId);
  worker.signal('SIGSTOP');
  return {
    target: worker.hostId,
    async heal() {
      worker.signal('SIGCONT');
      stage.down.delete(worker.hostId);
    },
  };
};

async function order(stage: Stage, worker: TestWorker, what: HookOrder): Promise<void> {
  await writeFile(stage.orderPaths.get(worker.hostId) ?? '', JSON.stringify(what));
  worker.signal('SIGUSR2');
}

const stall =
  (stallMs: number): Injection =>
  async (stage, choice) => {
    const worker = pickWorker(stage, choice);
    if (stage.down.has(worker.hostId)) return undefined;
    await order(stage, worker, { stallMs });
    return { target: worker.hostId, heal: () => delay(0) };
  };

/** Moves the clock of one process, forward or back. */
const jump: Injection = async (stage, choice) => {
  const worker = pickWorker(stage, choice);
  if (stage.down.has(worker.hostId)) return undefined;
  const { pid } = worker;
  await order(stage, worker, { clockOffsetMs: choice * 100 - Math.floor(choice * 100) < 0.5 ? HOUR_MS : -HOUR_MS });
  return {
    target: worker.hostId,
    async heal() {
      // A process that has been started since then has the right time.
      if (worker.pid === pid && !stage.down.has(worker.hostId)) await order(stage, worker, { clockOffsetMs: 0 });
    },
  };
};

export const workerFaults = {
  'worker-kill': end('SIGKILL'),
  'worker-term': end('SIGTERM'),
  'worker-stop': stop,
  'worker-stall': stall(3_000),
  'worker-clock-jump': jump,
  'host-dead': end('SIGKILL'),
  'host-asleep': stop,
};
