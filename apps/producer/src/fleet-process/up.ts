import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { readFleetFile, writeFleetFile } from '@shellfleet/client';
import {
  checkoutRoot,
  ensureMachine,
  ensureMachineWithoutEngine,
  ensureRedis,
  type Machine,
  makeStateFolder,
  type Redis,
  stopDocker,
} from '@shellfleet/setup';
import { endFleet } from './down.ts';
import { isOurs, killAndWait, readFleetRecord, removeFleetRecord, VERSION, writeFleetRecord } from './fleet-record.ts';
import { ensureSealKey } from './seal-key.ts';
import { superviseWorker, type WorkerProcess } from './worker-process.ts';

/** Longest time for a worker to end its sessions; then it is killed. */
const END_GRACE_MS = 40_000;

export interface UpOptions {
  workers: number;
  slots?: number;
  policies?: string;
}

export interface RunningFleet {
  /** `reused`: the fleet was running already. */
  started: 'started' | 'reused';
  /** Ends everything that was started. Returns how many sessions ended with it. */
  close(): Promise<void>;
}

/**
 * Starts the missing parts of a fleet on this machine (engine, images, keeper, Redis, workers), then runs a first command.
 * A running fleet of this version and checkout is left as it is. Throws a SetupError with its fix.
 */
export async function startFleet(
  options: UpOptions,
  env: NodeJS.ProcessEnv,
  report: (line: string) => void,
): Promise<RunningFleet> {
  const before = await reuseOrReplace(env, report);
  if (before === 'reuse') return { started: 'reused', close: async () => {} };
  process.title = 'shellfleet-up';
  const folder = await makeStateFolder(env);
  const machine = await ensurePolicies(options, env, report);
  const startedEngine = machine?.engine.startedHere || before.startedEngine;
  const redis = await ensureRedis({ env, folder: await makeStateFolder(env, 'redis'), persistent: true, report });
  const workers: WorkerProcess[] = [];
  try {
    const sealKeys = await ensureSealKey(folder, env);
    const namespace = env.SHELLFLEET_NAMESPACE ?? 'shellfleet';
    await writeFleetFile({ version: 1, namespace, redisUrl: redis.url, sealKeys }, env);
    const log = createWriteStream(join(folder, 'workers.log'), { flags: 'a', mode: 0o600 });
    report(`Starting ${options.workers === 1 ? 'a worker' : `${options.workers} workers`}`);
    for (let number = 1; number <= options.workers; number += 1) {
      const workerEnv = toWorkerEnv(number, options, {
        env,
        redis,
        sealKeys,
        machine,
      });
      const onRestart = (reason: string) => report(`A worker ended and is started again: ${reason}`);
      workers.push(superviseWorker(workerEnv, (chunk) => log.write(chunk), onRestart));
    }
    await Promise.all(workers.map(({ ready }) => ready));
    const record = {
      pid: process.pid,
      version: VERSION,
      checkout: checkoutRoot,
      startedAt: new Date().toISOString(),
      startedEngine,
    };
    const keepRecord = () => writeFleetRecord({ ...record, workerPids: workers.flatMap(({ pid }) => pid ?? []) }, env);
    await keepRecord();
    const timer = setInterval(() => void keepRecord().catch(() => {}), 5_000);
    return {
      started: 'started',
      async close() {
        clearInterval(timer);
        await stopAll(workers, redis);
        if (startedEngine) await stopDocker(env);
        await removeFleetRecord(env);
      },
    };
  } catch (error) {
    await stopAll(workers, redis);
    throw error;
  }
}

/** `reuse` when a fleet of this version and checkout runs. Ends any other fleet, or takes over the rest of a dead one, and reports it. */
async function reuseOrReplace(
  env: NodeJS.ProcessEnv,
  report: (line: string) => void,
): Promise<'reuse' | { startedEngine: boolean }> {
  const record = await readFleetRecord(env);
  if (record === undefined) return { startedEngine: false };
  if (await isOurs(record.pid, 'shellfleet-up')) {
    if (record.version === VERSION && record.checkout === checkoutRoot && (await readFleetFile(env)) !== undefined) {
      report(`A fleet runs already, since ${record.startedAt} (process ${record.pid}); it is used as it is.`);
      return 'reuse';
    }
    report(`A fleet of another version or checkout runs (${record.version}); it is replaced.`);
    await endFleet(env);
    return { startedEngine: false };
  }
  report('The last fleet was not ended in order; what is left of it is taken over.');
  // Killed instead of terminated, so that the shells outlive their worker and the next one adopts them.
  for (const pid of record.workerPids) await killAndWait(pid, 'shellfleet-worker');
  await removeFleetRecord(env);
  return { startedEngine: record.startedEngine };
}

/** The policies that the fleet's workers will offer, parsed as the workers parse them. */
function policiesOf({ policies }: UpOptions, env: NodeJS.ProcessEnv): string[] {
  return (policies ?? env.SHELLFLEET_POLICIES ?? '')
    .split(',')
    .map((policy) => policy.trim())
    .filter(Boolean);
}

/** Sets up what the policies need on this machine. Without a list, docker is assumed. Undefined: no engine is needed. */
async function ensurePolicies(
  options: UpOptions,
  env: NodeJS.ProcessEnv,
  report: (line: string) => void,
): Promise<Machine | undefined> {
  const policies = policiesOf(options, env);
  if (policies.length === 0 || policies.includes('docker')) return ensureMachine(env, report);
  await ensureMachineWithoutEngine(report);
  return undefined;
}

interface WorkerSurroundings {
  env: NodeJS.ProcessEnv;
  redis: Redis;
  sealKeys: string[];
  machine: Machine | undefined;
}

function toWorkerEnv(number: number, options: UpOptions, surroundings: WorkerSurroundings): NodeJS.ProcessEnv {
  const { env, redis, sealKeys, machine } = surroundings;
  return {
    ...env,
    ...(machine === undefined ? {} : { DOCKER_HOST: machine.engine.endpoint.dockerHost }),
    SHELLFLEET_REDIS_URL: redis.url,
    SHELLFLEET_SEAL_KEY: sealKeys.join(','),
    SHELLFLEET_DEFAULT_IMAGE: env.SHELLFLEET_DEFAULT_IMAGE || machine?.sessionImage,
    ...(options.slots === undefined ? {} : { SHELLFLEET_SLOTS: String(options.slots) }),
    ...(options.policies === undefined ? {} : { SHELLFLEET_POLICIES: options.policies }),
    // The first worker keeps the machine's own id. Further ones on the same machine need ids of their own.
    ...(number === 1 ? {} : { SHELLFLEET_HOST_ID: `${env.SHELLFLEET_HOST_ID || 'host'}-${number}` }),
  };
}

async function stopAll(workers: WorkerProcess[], redis: Redis): Promise<void> {
  await Promise.all(workers.map((worker) => worker.stop('SIGINT', END_GRACE_MS)));
  await redis.close();
}
