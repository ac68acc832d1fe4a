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
import { removeOtherProtocol } from './other-protocol.ts';
import { ensureOwnImageNames } from './own-image-names.ts';
import { ensureSealKey } from './seal-key.ts';
import { type SharedSettings, toWorkerEnv } from './worker-env.ts';
import { superviseWorker, type WorkerProcess } from './worker-process.ts';

/** Longest time for a worker to end its sessions. After that the worker is killed. */
const END_GRACE_MS = 40_000;

export interface UpOptions extends FleetClaimOptions, SharedSettings {
  workers: number;
}

export interface RunningFleet {
  started: 'started' | 'reused';
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
  if (claimed.type === 'reuse') return { started: 'reused', use: async () => undefined, close: async () => {} };
  const { record, drained } = claimed;
  const parts: FleetParts = { record, drained, redis: undefined, workers: [], stopImage: async () => {} };
  try {
    await startParts(parts, options, { env, report, signal });
    return { started: 'started', use: () => tryToReadUse(parts.record, env), close: () => endParts(parts, env) };
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
  /** Interrupts the making of an image. */
  stopImage(): Promise<void>;
}

interface Start {
  env: NodeJS.ProcessEnv;
  report: (line: string) => void;
  signal: AbortSignal;
}

async function startParts(parts: FleetParts, options: UpOptions, { env, report, signal }: Start): Promise<void> {
  const directory = await makeStateDirectory(env);
  const machine = await ensurePolicies(options, { env, report, signal });
  const redisDirectory = await makeStateDirectory(env, 'redis');
  const redis = await ensureRedis({ env, directory: redisDirectory, persistent: true, report, signal });
  parts.redis = redis;
  const sealKeys = await ensureSealKey(directory, env);
  const namespace = env.SHELLFLEET_NAMESPACE ?? 'shellfleet';
  const { replace } = options;
  await removeOtherProtocol({ redisUrl: redis.url, namespace }, { replace, report, signal });
  await writeFleetFile({ version: 1, namespace, redisUrl: redis.url, sealKeys }, env);
  await undoDrains(parts.drained, { redisUrl: redis.url, namespace, sealKeys });
  const log = createWriteStream(join(directory, 'workers.log'), { flags: 'a', mode: 0o600 });
  const keepRecord = () => {
    parts.record.workers = parts.workers.flatMap((worker) => worker.process ?? []);
    replaceFleetRecord(parts.record, env);
  };
  signal.throwIfAborted();
  report(`Starting ${options.workers === 1 ? 'a worker' : `${options.workers} workers`}`);
  for (let number = 1; number <= options.workers; number += 1) {
    const workerEnv = toWorkerEnv(number, options, { env, redis, sealKeys, machine });
    parts.workers.push(
      superviseWorker(workerEnv, {
        changed: () => keepOrReport(keepRecord, report),
        output: (chunk) => log.write(chunk),
        restarts: (reason) => report(`A worker ended and is started again: ${reason}`),
      }),
    );
    keepRecord();
  }
  await abortable(Promise.all(parts.workers.map(({ ready }) => ready)), signal);
  parts.record.state = 'up';
  keepRecord();
  if (machine !== undefined) parts.stopImage = makeFullImage(machine, { env, report });
}

/** Withdraws requests to drain before the next workers of the hosts look for them (REPLACE-2). */
async function undoDrains(
  hosts: readonly string[],
  settings: { redisUrl: string; namespace: string; sealKeys: string[] },
) {
  if (hosts.length === 0) return;
  await using fleet = await Fleet.connect(settings);
  // A host that was drained may be unknown to this Redis, if that is a new one.
  for (const host of hosts) await fleet.drainHost(host, { undo: true }).catch(() => {});
}

/** Writes the record. A failure, such as a full disk, is reported and does not end the fleet. */
function keepOrReport(keepRecord: () => void, report: (line: string) => void): void {
  try {
    keepRecord();
  } catch (error) {
    report(`The record of this fleet could not be written: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function endParts({ workers, redis, record, stopImage }: FleetParts, env: NodeJS.ProcessEnv): Promise<void> {
  await Promise.all([stopImage(), ...workers.map((worker) => worker.stop('SIGINT', END_GRACE_MS))]);
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
