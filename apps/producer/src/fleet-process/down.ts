import { setTimeout as delay } from 'node:timers/promises';
import { makeStateFolder, stopDocker, stopRedis } from '@shellfleet/setup';
import { isOurs, readFleetRecord, removeFleetRecord } from './fleet-record.ts';

const LONGEST_END_MS = 60_000;

/** Ends the processes that `up` started, and no others. Returns false when there were none. */
export async function endFleet(env: NodeJS.ProcessEnv): Promise<boolean> {
  const record = await readFleetRecord(env);
  if (record === undefined) return false;
  if (await isOurs(record.pid, 'shellfleet-up')) process.kill(record.pid, 'SIGINT');
  await untilGone(record.pid, 'shellfleet-up');
  // A supervisor that shut down normally leaves no processes. One that was killed leaves its workers and servers running.
  for (const pid of record.workerPids) if (await isOurs(pid, 'shellfleet-worker')) process.kill(pid, 'SIGINT');
  for (const pid of record.workerPids) await untilGone(pid, 'shellfleet-worker');
  await stopRedis(await makeStateFolder(env, 'redis'));
  if (record.startedEngine) await stopDocker(env);
  await removeFleetRecord(env);
  return true;
}

async function untilGone(pid: number, title: 'shellfleet-up' | 'shellfleet-worker'): Promise<void> {
  for (const giveUpAt = Date.now() + LONGEST_END_MS; await isOurs(pid, title); await delay(50)) {
    if (Date.now() > giveUpAt) process.kill(pid, 'SIGKILL');
  }
}
