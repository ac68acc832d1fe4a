import { readFileSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { namespaceSchema, parseOrThrow, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';

const fleetFileSchema = z.object({
  version: z.literal(1, 'is a version that this program does not support'),
  namespace: namespaceSchema,
  redisUrl: z.string().min(1),
  sealKeys: z.array(z.string().min(1)).min(1),
  api: z.object({ url: z.url(), key: z.string().min(1) }).optional(),
});

/** The connection file: address and keys of a fleet. `up` writes it for this user, and `Fleet.connect` reads it. */
export interface FleetFile {
  /** Version of this format. */
  version: 1;
  /** The fleet's name in Redis. */
  namespace: string;
  /** URL of Redis, with its password. */
  redisUrl: string;
  /** Seal keys. The first one seals. */
  sealKeys: string[];
  /** The HTTP API of the fleet, and this user's key for it. Clients of other languages need nothing else. */
  api?: { url: string; key: string } | undefined;
}

/** Returns the path: in `SHELLFLEET_STATE_DIR`, `$XDG_STATE_HOME/shellfleet` or `~/.local/state/shellfleet`. */
export function fleetFilePath(env: NodeJS.ProcessEnv): string {
  const directory =
    env.SHELLFLEET_STATE_DIR || join(env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'shellfleet');
  return join(directory, 'fleet.json');
}

/** Reads the connection file, if this user has one. Rejects with REDIS_UNSUITABLE when it is not valid. */
export async function readFleetFile(env: NodeJS.ProcessEnv): Promise<FleetFile | undefined> {
  const path = fleetFilePath(env);
  let text: string;
  try {
    // `exec` needs nothing else of `node:fs/promises`, which takes Node 1.5 ms to load.
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unreadable(path, error as NodeJS.ErrnoException);
  }
  const what = `The connection file ${path}`;
  return parseOrThrow(fleetFileSchema, tryJson(text), 'REDIS_UNSUITABLE', what);
}

function unreadable(path: string, cause: NodeJS.ErrnoException): ShellfleetError {
  const message = `The connection file ${path} cannot be read (${cause.code}). Only the user who ran \`up\` may read it: run this as that user, correct SHELLFLEET_STATE_DIR, or set SHELLFLEET_REDIS_URL.`;
  return new ShellfleetError('REDIS_UNSUITABLE', message, { path }, { cause });
}

/** Writes the connection file in one step, with mode 600, since it has secrets. Returns its path. */
export async function writeFleetFile(file: FleetFile, env: NodeJS.ProcessEnv): Promise<string> {
  const path = fleetFilePath(env);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, `${JSON.stringify(file, undefined, 2)}\n`, { mode: 0o600 });
  await rename(temporary, path);
  return path;
}

export async function removeFleetFile(env: NodeJS.ProcessEnv): Promise<void> {
  await rm(fleetFilePath(env), { force: true });
}
