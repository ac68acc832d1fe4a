import { setTimeout as delay } from 'node:timers/promises';
import { readFleetFile } from '@shellfleet/client';
import { checkoutRoot, findDocker, makeStateFolder, recordProcess } from '@shellfleet/setup';
import { VERSION } from '../program-file.ts';
import { endFleet } from './down.ts';
import {
  claimFleetRecord,
  endWorkers,
  type FleetRecord,
  isSupervisorRunning,
  readFleetRecord,
  removeFleetRecord,
  replaceFleetRecord,
} from './fleet-record.ts';

const POLL_MS = 100;

/**
 * Makes this process the supervisor of this machine's fleet, and writes the record of it before anything is started. `reuse`: a fleet of this version
 * and checkout runs. Ends any other fleet, takes over the rest of a dead one, and waits for one that is being started.
 */
export async function claimFleet(
  env: NodeJS.ProcessEnv,
  report: (line: string) => void,
  signal: AbortSignal,
): Promise<'reuse' | FleetRecord> {
  await makeStateFolder(env);
  const own = await newRecord(env);
  for (let hasWaited = false; ; signal.throwIfAborted()) {
    const record = await readFleetRecord(env);
    if (record === undefined) {
      if (claimFleetRecord(own, env)) return own;
      // Written in the meantime, or unreadable.
      if ((await readFleetRecord(env)) === undefined) await removeFleetRecord(env);
    } else if (!isSupervisorRunning(record)) {
      report('The last fleet was not ended in order; what is left of it is taken over.');
      return takeOver(record, own, env);
    } else if (record.state === 'starting') {
      if (!hasWaited) report(`A fleet is being started by process ${record.supervisor.pid}; waiting for it.`);
      hasWaited = true;
      await delay(POLL_MS, undefined, { signal });
    } else if (record.version === VERSION && record.checkout === checkoutRoot && (await readFleetFile(env))) {
      report(
        `A fleet runs already, since ${record.startedAt} (process ${record.supervisor.pid}); it is used as it is, with the settings that it was started with (\`shellfleet down\` ends it).`,
      );
      return 'reuse';
    } else {
      report(`A fleet of another version or checkout runs (${record.version}); it is replaced.`);
      await endFleet(env);
    }
  }
}

async function newRecord(env: NodeJS.ProcessEnv): Promise<FleetRecord> {
  return {
    state: 'starting',
    supervisor: recordProcess(process.pid),
    workers: [],
    version: VERSION,
    checkout: checkoutRoot,
    startedAt: new Date().toISOString(),
    // Where no engine answers now, one that set-up's pid file names later was started for this fleet.
    startedEngine: (await findDocker(env)) === undefined,
  };
}

async function takeOver(dead: FleetRecord, own: FleetRecord, env: NodeJS.ProcessEnv): Promise<FleetRecord> {
  const startedEngine = own.startedEngine || dead.startedEngine;
  replaceFleetRecord({ ...own, workers: dead.workers, startedEngine }, env);
  // Killed instead of terminated, so that the shells outlive their worker and the next one adopts them.
  await endWorkers(dead.workers, { signal: 'SIGKILL', graceMs: 0 });
  return { ...own, startedEngine };
}
