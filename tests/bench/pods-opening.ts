import { once } from 'node:events';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { SessionSpec } from '@shellfleet/client';
import { keeperPath } from '@shellfleet/keeper';
import { checkoutRoot, ensureKeeperImage, ensureMachine } from '@shellfleet/setup';
import { Kubelet } from '../support/kubernetes/kubelet/kubelet.ts';
import { percentile } from './measure/spread.ts';
import { openPodsStage } from './pods/pods-stage.ts';

// `npm run pods-opening`: the time from a new session to the Result of its first command, on the kubelet of the tests,
// which starts a container for each Pod: from a pool and without one. Needs root and the Docker engine.

const TIMES = 20;
const POOL = 4;
/** A session with other limits than those of the pool. */
const COLD: SessionSpec = { policy: 'kubernetes', limits: { cpus: 0.75 } };
const WARM: SessionSpec = { policy: 'kubernetes' };

await using cleanup = new AsyncDisposableStack();
const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => reject(new Error(signal)));
});
// One that comes before anything is measured ends the program then.
interrupted.catch(() => {});
const report = (line: string) => console.error(line);
const { engine, sessionImage } = await ensureMachine(process.env, report);
const { dockerHost } = engine.endpoint;
const deps = { endpoint: engine.endpoint, env: process.env, root: checkoutRoot, report };
const keeperImage = await ensureKeeperImage(deps, await keeperPath(), process.arch === 'arm64' ? 'arm64' : 'x64');
const stage = cleanup.use(
  await openPodsStage({
    ...{ host: '127.0.0.1', keeperImage, sessionImage, slots: 50, unenforced: [] },
    pools: [{ policy: 'kubernetes', min: POOL, max: POOL }],
  }),
);
const { server, fleet } = stage;
const kubelet = await Kubelet.start(server, {
  ...{ dockerHost, nodes: [{ name: 'node-1' }], enforced: true, pullBackoffMs: 10_000, housekeepingMs: 10_000 },
});
cleanup.defer(() => kubelet.close());
const worker = await stage.startWorker();

/** Waits until the pool is full and the machine is quiet. */
async function untilFull(): Promise<void> {
  while ((await fleet.hosts())[0]?.pools?.at(0)?.ready !== POOL) await delay(100);
  await delay(1_000);
}

/** Returns the times of sessions that were opened one after another. Throws unless they started as they should. */
async function measure(name: string, spec: SessionSpec, start: 'warm' | 'cold'): Promise<number[]> {
  const times: number[] = [];
  for (let turn = 0; turn < TIMES; turn++) {
    await untilFull();
    const from = performance.now();
    const session = await fleet.session(`${name}${turn}`, spec);
    const { outcome, error } = await session.run('echo hi');
    times.push(performance.now() - from);
    const info = await session.info();
    if (outcome !== 'success' || info.start !== start)
      throw new Error(
        `a session ended with ${outcome}, began ${info.start}: ${JSON.stringify(error ?? info.coldReason)}`,
      );
    await session.close();
  }
  return times;
}

const rows = [];
for (const [start, spec] of [
  ['cold', COLD],
  ['warm', WARM],
] as const) {
  const times = await Promise.race([measure(start, spec, start), interrupted]);
  const [p50, p95] = [percentile(times, 0.5), percentile(times, 0.95)].map((ms) => ms.toFixed(0));
  rows.push({ start, times: times.length, 'p50, ms': p50, 'p95, ms': p95, load: loadavg()[0]?.toFixed(1) });
}
console.table(rows);
worker.kill('SIGINT');
await once(worker, 'exit');
