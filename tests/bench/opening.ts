import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Fleet, type Result, type Session, type SessionSpec } from '@shellfleet/client';
import { createSealKey } from '@shellfleet/sealing';
import { ensureMachine, ensureRedis } from '@shellfleet/setup';
import Docker from 'dockerode';
import { percentile } from './measure/spread.ts';
import { startWorker } from './rows/worker-process.ts';

// `npm run opening`: the time from a new session to the Result of its first command, from a pool and without one, and
// in which steps it is spent. `BURST` sessions at once, with as many sandboxes ready. `npm run opening -- --cold`
// leaves out what is from a pool.

const TIMES = 40;
const BURST = 100;
const isColdOnly = process.argv.includes('--cold');
const POOL = isColdOnly ? 0 : BURST;
/** A session with other limits than those of the pool. */
const COLD: SessionSpec = { limits: { pids: 200 } };
const STEPS = ['queuedMs', 'startMs', 'runMs', 'totalMs'] as const;

await using cleanup = new AsyncDisposableStack();
const report = (line: string) => console.error(line);
const { engine, sessionImage } = await ensureMachine(process.env, report);
const { dockerHost, socketPath, host, port } = engine.endpoint;
const docker = new Docker(socketPath === undefined ? { host, port, protocol: 'http' } : { socketPath });
const directory = await mkdtemp(join(tmpdir(), 'sf-opening-'));
cleanup.defer(() => rm(directory, { recursive: true, force: true }));
const redis = cleanup.use(await ensureRedis({ env: {}, directory, persistent: false, report }));
const configPath = join(directory, 'config.yaml');
const pools = isColdOnly ? [] : [{ min: POOL, max: POOL }];
await writeFile(configPath, JSON.stringify({ pools }));
const [namespace, sealKey] = [`opening-${randomUUID().slice(0, 8)}`, createSealKey()];
const state = join(directory, 'state');
const slots = 4 * BURST;
const settings = {
  redisUrl: redis.url,
  namespace,
  directory: state,
  image: sessionImage,
  dockerHost,
  slots,
  configPath,
};
const worker = await startWorker(settings, [sealKey]);
const ended = new Promise((resolve) => worker.once('exit', resolve));
cleanup.defer(async () => {
  worker.kill('SIGINT');
  await ended;
});
const fleet = await Fleet.connect({ redisUrl: redis.url, namespace, sealKeys: [sealKey] });
cleanup.defer(() => fleet.close());

/** Waits until the pool is full and the host is quiet. */
async function untilFull(): Promise<void> {
  while ((await fleet.hosts())[0]?.pools?.at(0)?.ready !== POOL) await delay(200);
  await delay(1_000);
}

let opened = 0;
interface Opened {
  session: Session;
  result: Result;
  ms: number;
}
async function open(spec: SessionSpec): Promise<Opened> {
  const from = performance.now();
  const session = await fleet.session(`s${opened++}`, spec);
  const result = await session.run('echo hi');
  const ms = performance.now() - from;
  if (result.outcome !== 'success') throw new Error(`a session did not start: ${JSON.stringify(result.error)}`);
  return { session, result, ms };
}

/** Throws unless the sessions started as they should. */
async function check(start: 'warm' | 'cold', all: readonly Opened[]): Promise<void> {
  for (const { session } of all) {
    const info = await session.info();
    if (info.start !== start) throw new Error(`a session started ${info.start} (${info.coldReason}), not ${start}`);
  }
}

async function closeAll(): Promise<void> {
  for await (const { id, state: now } of fleet.sessions())
    if (now !== 'closed') await (await fleet.attach(id))?.close();
}

/** Returns the options of a session's container, for one without a keeper that is not the worker's. */
async function optionsOf({ session }: Opened): Promise<Docker.ContainerCreateOptions> {
  const label = [`shellfleet.namespace=${namespace}`, `shellfleet.session=${session.id}`];
  const [found] = await docker.listContainers({ filters: { label } });
  if (found === undefined) throw new Error(`the session ${session.id} has no container`);
  const { Config: config, HostConfig } = await docker.getContainer(found.Id).inspect();
  return { ...config, Hostname: '', Labels: {}, Entrypoint: ['sleep'], Cmd: ['60'], HostConfig };
}

/** Creates and starts a container, and returns the time that the engine took. */
async function startContainer(options: Docker.ContainerCreateOptions): Promise<number> {
  const from = performance.now();
  const container = await docker.createContainer(options);
  await container.start();
  const ms = performance.now() - from;
  await container.remove({ force: true });
  return ms;
}

const rows: Record<string, string>[] = [];
function show(name: string, all: readonly { ms: number; result?: Result }[]): void {
  const times = all.map(({ ms }) => ms);
  const shown = (values: readonly number[], share: number) =>
    values.length === 0 ? '' : percentile(values, share).toFixed(1);
  const steps = STEPS.map((step) => [
    step,
    shown(
      all.flatMap(({ result }) => (result === undefined ? [] : [result.timings[step]])),
      0.5,
    ),
  ]);
  rows.push({ name, p50: shown(times, 0.5), p95: shown(times, 0.95), ...Object.fromEntries(steps) });
}

async function measurePool(): Promise<void> {
  await untilFull();
  const warm: Opened[] = [];
  for (let turn = 0; turn < TIMES; turn++) {
    warm.push(await open({}));
    await delay(50);
  }
  await check('warm', warm);
  show('from a pool, one at a time', warm);
  await closeAll();
  await untilFull();
  const burst = await Promise.all(Array.from({ length: BURST }, () => open({})));
  await check('warm', burst);
  show(`from a pool, ${BURST} at once`, burst);
  await closeAll();
  await untilFull();
}

/** Takes turns with the engine alone, so that other load on the machine affects both. */
async function measureCold(): Promise<void> {
  const cold = [await open(COLD)];
  const options = await optionsOf(cold[0] as Opened);
  const engineAlone: { ms: number }[] = [];
  for (let turn = 0; turn < TIMES; turn++) {
    cold.push(await open(COLD));
    engineAlone.push({ ms: await startContainer(options) });
  }
  await check('cold', cold);
  show('cold, one at a time', cold.slice(1));
  show('the engine alone', engineAlone);
}

if (!isColdOnly) await measurePool();
await measureCold();
console.table(rows);
await closeAll();
