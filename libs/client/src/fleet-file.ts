import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { namespaceSchema, parseOrThrow } from '@shellfleet/protocol';
import { z } from 'zod';

const fleetFileSchema = z.object({
  version: z.literal(1, 'is of a version that this program does not know'),
  namespace: namespaceSchema,
  redisUrl: z.string().min(1),
  sealKeys: z.array(z.string().min(1)).min(1),
});

/** Where a fleet is and what opens it: what `up` leaves in the user's state folder for whoever looks for the fleet. */
export interface FleetFile {
  version: 1;
  namespace: string;
  redisUrl: string;
  /** the sealing one first */
  sealKeys: string[];
}

export function fleetFilePath(env: NodeJS.ProcessEnv): string {
  const folder =
    env.SHELLFLEET_STATE_DIR || join(env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'shellfleet');
  return join(folder, 'fleet.json');
}

/** Undefined when no fleet was started by this user. Throws REDIS_UNSUITABLE when the file is broken. */
export async function readFleetFile(env: NodeJS.ProcessEnv): Promise<FleetFile | undefined> {
  const path = fleetFilePath(env);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const what = `The connection file ${path}`;
  return parseOrThrow(fleetFileSchema, parseJson(text), 'REDIS_UNSUITABLE', what);
}

/** Only its user may read it: it holds the password of Redis and the seal keys. A reader sees the old file or the new one, never half. */
export async function writeFleetFile(file: FleetFile, env: NodeJS.ProcessEnv): Promise<string> {
  const path = fleetFilePath(env);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, `${JSON.stringify(file, undefined, 2)}\n`, { mode: 0o600 });
  await rename(temporary, path);
  return path;
}

/** The fleet has ended: nobody is to look for it any more. */
export async function removeFleetFile(env: NodeJS.ProcessEnv): Promise<void> {
  await rm(fleetFilePath(env), { force: true });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
