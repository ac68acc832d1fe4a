import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Fleet, writeFleetFile } from '@shellfleet/client';
import { abortable } from '@shellfleet/concurrency';
import {
  ensureBubblewrap,
  ensureMachine,
  ensureMachineWithoutEngine,
  ensureRedis,
  type Machine,
  makeStateDirectory,
  type Redis,
  stopDocker,
} from '@shellfleet/setup';
import { claimFleet, type FleetClaimOptions } from './claim-fleet.ts';
import { type FleetRecord, removeFleetRecord, replaceFleetRecord } from './fleet-record.ts';
import { type FleetUse, tryToReadUse } from './fleet-use.ts';
import { makeFullImage } from './full-image.ts';
import { openToUser } from './open-to-user.ts';
import { removeOtherProtocol } from './other-protocol.ts';
import { ensureOwnImageNames } from './own-image-names.ts';
import { ensureSealKey } from './seal-key.ts';
import { type ApiProcess, type ServedFleet, superviseApi } from './supervise-api.ts';
import { superviseWorker, type WorkerProcess } from './supervise-worker.ts';
import { type SharedSettings, toWorkerEnv } from './worker-env.ts';

/** Longest time for a worker to end its sessions, and for the API to end its requests. Then they are killed. */
const END_GRACE_MS = 40_000;
const API_GRACE_MS = 10_000;

export interface UpOptions extends FleetClaimOptions, SharedSettings {
  workers: number;
}

export interface RunningFleet {
  started: 'started' | 'reused';
  /** Resolves when the HTTP API answers. The workers serve before that. */
  served: Promise<void>;
  /** Reads the sessions and commands that would end with the fleet. */
  use(): Promise<FleetUse | undefined>;
  close(): Promise<void>;
}

/**
 * Starts the missing parts of a fleet on this machine (engine, images, keeper, Redis, workers), or uses a running fleet
 * of this version. Throws a SetupError with its fix. After an error or an abort, every started part has ended.
 */
export async function startFleet(
  options: UpOptions,
  env: NodeJS.ProcessEnv,
  report: (line: string) => void,
  signal: AbortSignal,
): Promise<RunningFleet> {
  process.title = 'shellfleet-up';
  const claimed = await claimFleet(options, { env, report, signal });
  if (claimed.type === 'reuse')
    return { started: 'reused', served: Promise.resolve(), use: async () => undefined, close: async () => {} };
  const { record, drained } = claimed;
  const parts: FleetParts = {
    record,
    drained,
    redis: undefined,
    workers: [],
    api: undefined,
    isEnding: false,
    stopImage: async () => {},
  };
  try {
    const { served } = await startParts(parts, options, { env, report, signal });
    return {
      started: 'started',
      served,
      use: () => tryToReadUse(parts.record, env),
      close: () => endParts(parts, env),
    };
  } catch (error) {
    await endParts(parts, env);
    throw error;
  }
}

interface FleetParts {
  record: FleetRecord;
  /** Hosts whose drain requests from the replaced fleet are still open. */
  drained: readonly string[];
  redis: Redis | undefined;
  workers: WorkerProcess[];
  api: ApiProcess | undefined;
  /** True once the parts end, after which nobody writes their addresses any more. */
  isEnding: boolean;
  /** Interrupts the making of an image. */
  stopImage(): Promise<void>;
}

interface Start {
  env: NodeJS.ProcessEnv;
  report: (line: string) => void;
  signal: AbortSignal;
}

/** Starts everything. Resolves when the workers are ready, to what resolves when the HTTP API is. */
async function startParts(
  parts: FleetParts,
  options: UpOptions,
  { env, report, signal }: Start,
): Promise<{ served: Promise<void> }> {
  const directory = await makeStateDirectory(env);
  const machine = await ensurePolicies(options, { env, report, signal });
  const redisDirectory = await makeStateDirectory(env, 'redis');
  const redis = await ensureRedis({ env, directory: redisDirectory, persistent: true, report, signal });
  parts.redis = redis;
  const fleet = {
    namespace: env.SHELLFLEET_NAMESPACE ?? 'shellfleet',
    redisUrl: redis.url,
    sealKeys: await ensureSealKey(directory, env),
  };
  await removeOtherProtocol(fleet, { replace: options.replace, report, signal });
  await writeFleetFile({ version: 1, ...fleet }, env);
  await undoDrains(parts.drained, fleet);
  signal.throwIfAborted();
  const start = { env, report, signal };
  const served = startServing(parts, fleet, openLog(directory, 'api.log'), start).then(() => {
    if (parts.isEnding) return;
    parts.record.state = 'up';
    keepRecord(parts, env);
  });
  // A failure of the API while the workers start is that of the start. A later one is met by who awaits `served`.
  const failed = served.then(() => new Promise<never>(() => {}));
  await Promise.race([
    startWorkers(parts, options, openLog(directory, 'workers.log'), { ...start, fleet, machine }),
    failed,
  ]);
  if (machine !== undefined) parts.stopImage = makeFullImage(machine, { env, report });
  return { served };
}

function openLog(directory: string, name: string): (chunk: Buffer) => void {
  const log = createWriteStream(join(directory, name), { flags: 'a', mode: 0o600 });
  return (chunk) => log.write(chunk);
}

/** Starts the HTTP API, and writes its address and the key of this user into the connection file. */
async function startServing(
  parts: FleetParts,
  fleet: ServedFleet,
  output: (chunk: Buffer) => void,
  { env, report, signal }: Start,
): Promise<void> {
  const key = openToUser(fleet, { env, report });
  const publish = async () => {
    const file = { version: 1 as const, ...fleet, api: { url: parts.api?.process?.url ?? '', key: await key } };
    if (!parts.isEnding) await writeFleetFile(file, env);
  };
  parts.api = superviseApi(fleet, env, {
    changed(process) {
      keepOrReport(() => keepRecord(parts, env), report);
      // An API that starts again has another address if its port was taken meanwhile.
      if (process?.url !== undefined && parts.record.state === 'up')
        void publish().catch((error: Error) => report(`The connection file could not be written: ${error.message}`));
    },
    output,
    restarts: (reason) => report(`The HTTP API ended and is started again: ${reason}`),
  });
  keepRecord(parts, env);
  await abortable(Promise.all([parts.api.ready, key]), signal);
  await publish();
}

async function startWorkers(
  parts: FleetParts,
  options: UpOptions,
  output: (chunk: Buffer) => void,
  { env, report, signal, fleet, machine }: Start & { fleet: ServedFleet; machine: Machine | undefined },
): Promise<void> {
  report(`Starting ${options.workers === 1 ? 'a worker' : `${options.workers} workers`}`);
  for (let number = 1; number <= options.workers; number += 1) {
    parts.workers.push(
      superviseWorker(toWorkerEnv(number, options, { env, fleet, machine }), {
        changed: () => keepOrReport(() => keepRecord(parts, env), report),
        output,
        restarts: (reason) => report(`A worker ended and is started again: ${reason}`),
      }),
    );
    keepRecord(parts, env);
  }
  await abortable(Promise.all(parts.workers.map(({ ready }) => ready)), signal);
}

function keepRecord({ record, workers, api }: FleetParts, env: NodeJS.ProcessEnv): void {
  record.workers = workers.flatMap((worker) => worker.process ?? []);
  record.api = api?.process;
  replaceFleetRecord(record, env);
}

/** Withdraws requests to drain before the next workers of the hosts look for them (REPLACE-2). */
async function undoDrains(hosts: readonly string[], settings: ServedFleet) {
  if (hosts.length === 0) return;
  await using fleet = await Fleet.connect(settings);
  // A host that was drained may be unknown to this Redis, if that is a new one.
  for (const host of hosts) await fleet.drainHost(host, { undo: true }).catch(() => {});
}

/** Writes the record. A failure, such as a full disk, is reported and does not end the fleet. */
function keepOrReport(keep: () => void, report: (line: string) => void): void {
  try {
    keep();
  } catch (error) {
    report(`The record of this fleet could not be written: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function endParts(parts: FleetParts, env: NodeJS.ProcessEnv): Promise<void> {
  const { workers, api, redis, record, stopImage } = parts;
  parts.isEnding = true;
  const ends = workers.map((worker) => worker.stop('SIGINT', END_GRACE_MS));
  await Promise.all([stopImage(), api?.stop('SIGTERM', API_GRACE_MS), ...ends]);
  await redis?.close();
  if (record.startedEngine) await stopDocker(env);
  await removeFleetRecord(env);
}

/** Returns the policies of the fleet's workers, parsed as the workers parse them. */
function policiesOf({ policies }: UpOptions, env: NodeJS.ProcessEnv): string[] {
  return (policies ?? env.SHELLFLEET_POLICIES ?? '')
    .split(',')
    .map((policy) => policy.trim())
    .filter(Boolean);
}

/** Sets up this machine for the policies, by default docker. Returns undefined if they need no engine. */
async function ensurePolicies(options: UpOptions, { env, report, signal }: Start): Promise<Machine | undefined> {
  const policies = policiesOf(options, env);
  if (policies.includes('bubblewrap')) await ensureBubblewrap(report);
  if (policies.length === 0 || policies.includes('docker')) {
    const imageNames = await ensureOwnImageNames(env);
    return ensureMachine(env, report, { signal, imageNames });
  }
  await ensureMachineWithoutEngine(report);
  return undefined;
}
