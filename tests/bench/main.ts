import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot, ensureMachine, ensureRedis, type Machine, stopDocker } from '@shellfleet/setup';
import Docker from 'dockerode';
import { readMachine } from './machine.ts';
import { RedisProbe } from './measure/redis-probe.ts';
import { type Plan, readPlan } from './plan.ts';
import { createBullmqRow } from './rows/bullmq.ts';
import { createDockerExecRow } from './rows/docker-exec.ts';
import { createFloorRow } from './rows/floor.ts';
import type { Row } from './rows/row.ts';
import { createShellfleetRow } from './rows/shellfleet.ts';
import { renderFigures, renderTargets } from './table.ts';
import { type Bench, IDLE_SESSIONS, takeFigures } from './take-figures.ts';
import { judge } from './targets.ts';

// `npm run bench -- [--quick] [--no-gate]`: every row in one run, figures to bench-results/ and stdout, then the targets.

async function main(plan: Plan, cleanup: AsyncDisposableStack): Promise<number> {
  const machine = await ensureMachine(process.env, report);
  if (machine.engine.startedHere) cleanup.defer(async () => void (await stopDocker(process.env)));
  const bench = await prepare(plan, machine, cleanup);
  const figures = await takeFigures(bench, plan);
  const targets = judge(figures);

  const at = new Date().toISOString();
  const facts = await readMachine({ redis: await bench.probe.version(), docker: machine.engine.version });
  const path = join(checkoutRoot, 'bench-results', `${at.replaceAll(':', '-')}.json`);
  await mkdir(join(checkoutRoot, 'bench-results'), { recursive: true });
  await writeFile(path, `${JSON.stringify({ at, machine: facts, plan, ...figures, targets }, undefined, 2)}\n`);
  console.log(`${renderFigures(figures, plan)}\n\n${renderTargets(targets)}\n\n${path}`);
  return plan.gate && targets.some(({ passed }) => !passed) ? 1 : 0;
}

async function prepare(plan: Plan, { engine, sessionImage }: Machine, cleanup: AsyncDisposableStack): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), 'shellfleet-bench-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  // Two servers, so that background work of the worker does not count for the other rows.
  const startRedis = async (name: string): Promise<string> => {
    const own = join(folder, name);
    await mkdir(own, { mode: 0o700 });
    return cleanup.use(await ensureRedis({ env: {}, folder: own, persistent: false, report })).url;
  };
  const [bareUrl, redisUrl] = [await startRedis('bare-redis'), await startRedis('redis')];
  const probes = { probe: new RedisProbe(redisUrl), bareProbe: new RedisProbe(bareUrl) };
  for (const probe of Object.values(probes)) cleanup.defer(() => probe.close());

  const keep = <T extends Row>(row: T): T => {
    cleanup.defer(() => row.close());
    return row;
  };
  const { dockerHost, socketPath, host, port } = engine.endpoint;
  const docker = new Docker(socketPath === undefined ? { host, port, protocol: 'http' } : { socketPath });
  const namespace = `bench-${randomUUID().slice(0, 8)}`;
  const slots = plan.few.sessions + IDLE_SESSIONS + 4;
  const worker = join(folder, 'worker');
  const shellfleet = keep(
    await createShellfleetRow({ redisUrl, namespace, folder: worker, image: sessionImage, dockerHost, docker, slots }),
  );
  const rows = [
    keep(await createFloorRow(bareUrl)),
    keep(await createBullmqRow(bareUrl)),
    keep(await createDockerExecRow(docker, sessionImage)),
    shellfleet,
  ];
  return { rows, shellfleet, ...probes, report };
}

function report(line: string): void {
  console.error(line);
}

const plan = readPlan(process.argv.slice(2));
const cleanup = new AsyncDisposableStack();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void cleanup.disposeAsync().finally(() => process.exit(130)));
try {
  process.exitCode = await main(plan, cleanup);
} finally {
  await cleanup.disposeAsync();
}
