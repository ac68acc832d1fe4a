import { readFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { removeFleetFile } from '@shellfleet/client';
import { checkoutRoot, makeStateFolder, stateFolder } from '@shellfleet/setup';
import { z } from 'zod';

/** The record of a running fleet, for `down` and later calls of `up`. It is in the state folder while the fleet runs. */
const fleetRecordSchema = z.object({
  pid: z.number(),
  workerPids: z.array(z.number()),
  version: z.string(),
  checkout: z.string(),
  startedAt: z.string(),
  startedEngine: z.boolean(),
});
export type FleetRecord = z.infer<typeof fleetRecordSchema>;

export const VERSION: string = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(join(checkoutRoot, 'package.json'), 'utf8'))).version;

function recordPath(env: NodeJS.ProcessEnv): string {
  return join(stateFolder(env), 'up.json');
}

export async function writeFleetRecord(record: FleetRecord, env: NodeJS.ProcessEnv): Promise<void> {
  await makeStateFolder(env);
  await writeFile(recordPath(env), JSON.stringify(record), { mode: 0o600 });
}

export async function readFleetRecord(env: NodeJS.ProcessEnv): Promise<FleetRecord | undefined> {
  const text = await readFile(recordPath(env), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return fleetRecordSchema.parse(JSON.parse(text));
  } catch {
    // Incomplete (the disk was full) or written by another version: treated as no record.
    return undefined;
  }
}

/** Removes the fleet record and the connection file. */
export async function removeFleetRecord(env: NodeJS.ProcessEnv): Promise<void> {
  await removeFleetFile(env);
  await rm(recordPath(env), { force: true });
}

/** Whether the process is alive and is a fleet's supervisor or worker. The pid alone proves nothing, because pids are reused. */
export async function isOurs(pid: number, title: 'shellfleet-up' | 'shellfleet-worker'): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== 'linux') return true;
  const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return commandLine.startsWith(title);
}

/** Kills a supervisor or worker of the fleet and waits until it is gone. */
export async function killAndWait(pid: number, title: 'shellfleet-up' | 'shellfleet-worker'): Promise<void> {
  while (await isOurs(pid, title)) {
    process.kill(pid, 'SIGKILL');
    await delay(20);
  }
}
