import { setTimeout as delay } from 'node:timers/promises';
import { readFleetFile } from '@shellfleet/client';
import { PROTOCOL_VERSION, speaksProtocol } from '@shellfleet/protocol';
import { findDocker, makeStateDirectory, recordProcess, SetupError } from '@shellfleet/setup';
import { VERSION } from '../program-file.ts';
import { describeBuild } from './describe-build.ts';
import {
  claimFleetRecord,
  endApi,
  endWorkers,
  type FleetRecord,
  isAnyWorkerRunning,
  isSupervisorRunning,
  readFleetRecord,
  removeFleetRecord,
  replaceFleetRecord,
} from './fleet-record.ts';
import { describeUse, readProtocol, tryToReadUse } from './fleet-use.ts';
import { replaceFleet } from './replace-fleet.ts';

const POLL_MS = 100;

export interface FleetClaimOptions {
  /** Replaces a running fleet of any version. By default a fleet of this version is used, and any other is refused. */
  replace: boolean;
  /** Time for the running commands of the replaced fleet. */
  drainMs: number;
}

/**
 * Result of claimFleet(). With `reuse`, a fleet of this version runs. With `claimed`, this process starts the fleet,
 * and `drained` lists hosts whose request to drain is still open.
 */
export type Claim = { type: 'reuse' } | { type: 'claimed'; record: FleetRecord; drained: string[] };

/**
 * Makes this process the supervisor of this machine's fleet, and writes its record first. Takes over leftovers of a
 * dead fleet, waits for a starting one, and replaces a running one on request. Throws a SetupError for an unusable
 * fleet.
 */
export async function claimFleet(
  { replace, drainMs }: FleetClaimOptions,
  { env, report, signal }: { env: NodeJS.ProcessEnv; report: (line: string) => void; signal: AbortSignal },
): Promise<Claim> {
  await makeStateDirectory(env);
  const own = await newRecord(env);
  let drained: string[] = [];
  for (let hasWaited = false; ; signal.throwIfAborted()) {
    const record = await readFleetRecord(env);
    if (record === undefined) {
      if (claimFleetRecord(own, env)) return { type: 'claimed', record: own, drained };
      // The record exists: another `up` has just written it, or it is unreadable.
      if ((await readFleetRecord(env)) === undefined) await removeFleetRecord(env);
    } else if (isDead(record)) {
      report('The last fleet was not ended in order; what is left of it is taken over.');
      return { type: 'claimed', record: await takeOver(record, own, env), drained };
    } else if (record.state === 'starting' && isSupervisorRunning(record)) {
      if (!hasWaited) report(`A fleet is being started by process ${record.supervisor.pid}; waiting for it.`);
      hasWaited = true;
      await delay(POLL_MS, undefined, { signal });
    } else if (replace) {
      drained = [...drained, ...(await replaceFleet(record, { env, report, signal, drainMs }))];
    } else {
      await refuseUnusable(record, env);
      report(describeReused(record, own));
      return { type: 'reuse' };
    }
  }
}

/** Returns true if the fleet has no supervisor and no workers of another version. */
function isDead(record: FleetRecord): boolean {
  return !isSupervisorRunning(record) && (record.version === VERSION || !isAnyWorkerRunning(record));
}

/** Throws for a running fleet that this version cannot use. */
async function refuseUnusable(record: FleetRecord, env: NodeJS.ProcessEnv): Promise<void> {
  const problem = await findProblem(record, env);
  if (problem === undefined) return;
  throw new SetupError(
    `${problem} In use: ${describeUse(await tryToReadUse(record, env))}. Nothing was changed.`,
    'up --replace lets its running commands finish, ends its sessions, and starts this version in its place',
  );
}

async function findProblem(record: FleetRecord, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (record.version !== VERSION)
    return `A fleet of another version runs: ${record.build}, since ${record.startedAt} (this is ${VERSION}).`;
  if ((await readFleetFile(env)) === undefined)
    return `A fleet of this version runs (process ${record.supervisor.pid}), but its connection file is gone.`;
  const protocol = await readProtocol(env);
  if (protocol === undefined || speaksProtocol(protocol)) return undefined;
  return `A fleet runs whose keys have version ${protocol} of the protocol: ${record.build} (this process has version ${PROTOCOL_VERSION}).`;
}

function describeReused(record: FleetRecord, own: FleetRecord): string {
  const isOther = record.build !== own.build;
  return `A fleet runs already, since ${record.startedAt} (process ${record.supervisor.pid}); it is used as it is, with the settings that it was started with.
It is ${record.build}${isOther ? `; this is ${own.build}` : ''}. \`up --replace\` starts this one in its place, \`shellfleet down\` ends it.`;
}

async function newRecord(env: NodeJS.ProcessEnv): Promise<FleetRecord> {
  return {
    state: 'starting',
    supervisor: recordProcess(process.pid),
    workers: [],
    version: VERSION,
    build: await describeBuild(),
    startedAt: new Date().toISOString(),
    // If no engine answers now, set-up starts an engine for this fleet.
    startedEngine: (await findDocker(env)) === undefined,
  };
}

async function takeOver(dead: FleetRecord, own: FleetRecord, env: NodeJS.ProcessEnv): Promise<FleetRecord> {
  const startedEngine = own.startedEngine || dead.startedEngine;
  const { workers, api } = dead;
  replaceFleetRecord({ ...own, workers, api, startedEngine }, env);
  // SIGKILL lets the shells outlive their worker, so that the next one adopts them. Readers of the API resume.
  const how = { signal: 'SIGKILL', graceMs: 0 } as const;
  await Promise.all([endWorkers(dead, how), endApi(dead, how)]);
  return { ...own, startedEngine };
}
