import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ensureRedis, type Machine } from '@shellfleet/setup';
import Docker from 'dockerode';
import { freePort } from '../support/redis-process.ts';
import { slotsFor } from '../support/slots-for.ts';
import { RedisProbe } from './measure/redis-probe.ts';
import { scrape } from './measure/scrape.ts';
import { OTHER_ROWS, type Part, type Plan } from './plan.ts';
import { createBullmqRow } from './rows/bullmq.ts';
import { createDockerAttachRow } from './rows/docker-attach.ts';
import { createDockerExecRow } from './rows/docker-exec.ts';
import { createDockerExecCliRow } from './rows/docker-exec-cli.ts';
import { createFloorRow } from './rows/floor.ts';
import { createNodePtyRow } from './rows/node-pty.ts';
import type { Row } from './rows/row.ts';
import { createShellfleetRow } from './rows/shellfleet.ts';
import type { WorkerOptions } from './rows/worker-process.ts';
import { type Bench, IDLE_SESSIONS } from './take-figures.ts';

/** Starts the Redis servers, and every row of the plan. */
export async function startRows(
  plan: Plan,
  { engine, sessionImage }: Machine,
  cleanup: AsyncDisposableStack,
  report: (line: string) => void,
): Promise<Bench> {
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-bench-'));
  cleanup.defer(() => rm(directory, { recursive: true, force: true }));
  // The rows use two servers, so that background work of the worker does not count for the other rows.
  const startRedis = async (name: string): Promise<string> => {
    const own = join(directory, name);
    await mkdir(own, { mode: 0o700 });
    return cleanup.use(await ensureRedis({ env: {}, directory: own, persistent: false, report })).url;
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
  const creates: Record<Other, () => Promise<Row>> = {
    floor: () => createFloorRow(bareUrl),
    bullmq: () => createBullmqRow(bareUrl),
    'docker-exec': () => createDockerExecRow(docker, sessionImage),
    'docker-exec-cli': () => createDockerExecCliRow(docker, sessionImage, dockerHost),
    'docker-attach': () => createDockerAttachRow(docker, sessionImage),
    'node-pty': () => createNodePtyRow(docker, sessionImage, dockerHost),
  };
  const rows: Row[] = [];
  for (const name of await possible(plan.parts, report)) rows.push(keep(await creates[name]()));

  const workerOf = (name: string, slots: number): WorkerOptions => ({
    redisUrl,
    namespace: `${name}-${randomUUID().slice(0, 8)}`,
    directory: join(directory, name),
    image: sessionImage,
    dockerHost,
    slots,
  });
  const slots = slotsFor(plan.few.sessions + IDLE_SESSIONS + 4);
  const metricsPort = plan.metrics ? await freePort() : undefined;
  const shellfleet = keep(await createShellfleetRow({ ...workerOf('bench', slots), docker, metricsPort }));
  if (metricsPort !== undefined) cleanup.use(scrape(metricsPort, report));
  const poolWorker = workerOf('bench-pool', 8);
  const floodRow = { ...workerOf('bench-flood', 2), docker };
  const toolWorker = workerOf('bench-tools', 1);
  return { rows: [...rows, shellfleet], shellfleet, poolWorker, floodRow, toolWorker, ...probes, report };
}

type Other = (typeof OTHER_ROWS)[number];

/** Returns the rows of the plan, without those that start the docker program where only an engine is installed. */
async function possible(parts: readonly Part[], report: (line: string) => void): Promise<Other[]> {
  const wanted = OTHER_ROWS.filter(
    (name) => parts.includes(name) || (name === 'docker-exec-cli' && parts.includes('cli')),
  );
  const version = await promisify(execFile)('docker', ['--version']).catch(() => undefined);
  const needing: Other[] = version ? [] : wanted.filter((name) => name === 'docker-exec-cli' || name === 'node-pty');
  for (const name of needing) report(`Not measured: ${name}, because there is no program docker on PATH`);
  return wanted.filter((name) => !needing.includes(name));
}
