import { makeStateDirectory, stopDocker, stopRedis } from '@shellfleet/setup';
import { endApi, endSupervisor, endWorkers, readFleetRecord, removeFleetRecord } from './fleet-record.ts';

const LONGEST_END_MS = 60_000;

/** Ends the processes that `up` started, and no others. Returns false if there were none. */
export async function endFleet(env: NodeJS.ProcessEnv): Promise<boolean> {
  const record = await readFleetRecord(env);
  if (record === undefined) return false;
  const how = { signal: 'SIGINT', graceMs: LONGEST_END_MS } as const;
  await endSupervisor(record, how);
  // A killed supervisor leaves its workers and servers. It may have started some after the first read of the record.
  const left = (await readFleetRecord(env)) ?? record;
  await Promise.all([endWorkers(left, how), endApi(left, how)]);
  await stopRedis(await makeStateDirectory(env, 'redis'), env);
  if (left.startedEngine) await stopDocker(env);
  await removeFleetRecord(env);
  return true;
}
