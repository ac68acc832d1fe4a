import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { removeFleetFile } from '@shellfleet/client';
import { tryJson } from '@shellfleet/protocol';
import { endProcess, isRunning, readProcess, stateDirectory } from '@shellfleet/setup';
import { z } from 'zod';

// RECORD-1. The record exists before anything starts and until everything has ended, so `down` and the next `up` find
//           everything that runs, even after the supervisor was killed.
// RECORD-2. The record is replaced in one step, so it is always whole.

const processSchema = z.object({ pid: z.number(), startedAt: z.string() });

/** Record of this machine's fleet for `down` and later calls of `up`, while any part of the fleet may run. */
const fleetRecordSchema = z.object({
  state: z.enum(['starting', 'up']),
  supervisor: processSchema,
  /** Workers of the fleet. A worker that is ready has its host id. */
  workers: z.array(processSchema.extend({ hostId: z.string().optional() })),
  /** The HTTP API. When it is ready, it has its URL. */
  api: processSchema.extend({ url: z.string().optional() }).optional(),
  version: z.string(),
  /** Version of the program, with its origin. */
  build: z.string(),
  startedAt: z.string(),
  /** True if set-up started the engine in its pid file for this fleet. */
  startedEngine: z.boolean(),
});
export type FleetRecord = z.infer<typeof fleetRecordSchema>;

/** Titles and command lines of a fleet's processes. A worker and the API get their titles soon after their start. */
const SUPERVISOR = ['shellfleet-up'];
const WORKER = ['shellfleet-worker', 'apps/worker/src/main.ts', '@shellfleet/worker/dist/main.js'];
const API = ['shellfleet-api', 'apps/api/src/main.ts', '@shellfleet/api/dist/main.js'];

function recordPath(env: NodeJS.ProcessEnv): string {
  return join(stateDirectory(env), 'up.json');
}

/** Writes the record of a fleet that is about to start. Returns false if one exists. The state directory must exist. */
export function claimFleetRecord(record: FleetRecord, env: NodeJS.ProcessEnv): boolean {
  const temporary = writeTemporary(record, env);
  try {
    linkSync(temporary, recordPath(env));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(temporary);
  }
}

export function replaceFleetRecord(record: FleetRecord, env: NodeJS.ProcessEnv): void {
  renameSync(writeTemporary(record, env), recordPath(env));
}

function writeTemporary(record: FleetRecord, env: NodeJS.ProcessEnv): string {
  const path = `${recordPath(env)}.${process.pid}`;
  writeFileSync(path, JSON.stringify(record), { mode: 0o600 });
  return path;
}

/** Reads the record. Returns undefined if there is none, or if it is unreadable, as one of another version may be. */
export async function readFleetRecord(env: NodeJS.ProcessEnv): Promise<FleetRecord | undefined> {
  const text = await readFile(recordPath(env), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : fleetRecordSchema.safeParse(tryJson(text)).data;
}

export async function removeFleetRecord(env: NodeJS.ProcessEnv): Promise<void> {
  await removeFleetFile(env);
  await rm(recordPath(env), { force: true });
  await removeLeftTemporaries(stateDirectory(env));
}

/** Removes what processes have left that were killed while they wrote the record. */
async function removeLeftTemporaries(directory: string): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    const pid = /^up\.json\.(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && readProcess(Number(pid)) === undefined) await rm(join(directory, name), { force: true });
  }
}

export function isAnyWorkerRunning({ workers }: FleetRecord): boolean {
  return workers.some((worker) => isRunning(worker, WORKER));
}

export function isApiRunning({ api }: FleetRecord): boolean {
  return api !== undefined && isRunning(api, API);
}

export function isSupervisorRunning({ supervisor }: FleetRecord): boolean {
  return isRunning(supervisor, SUPERVISOR);
}

type Ending = { signal: NodeJS.Signals; graceMs: number };

export async function endSupervisor({ supervisor }: FleetRecord, how: Ending): Promise<void> {
  await endProcess(supervisor, SUPERVISOR, how);
}

export async function endWorkers({ workers }: Pick<FleetRecord, 'workers'>, how: Ending): Promise<void> {
  await Promise.all(workers.map((worker) => endProcess(worker, WORKER, how)));
}

export async function endApi({ api }: Pick<FleetRecord, 'api'>, how: Ending): Promise<void> {
  if (api !== undefined) await endProcess(api, API, how);
}
