import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeStateFolder } from '../state-folder.ts';

/** For how long a failed pull is not tried again: a rerun on a machine without a registry must not wait for it again. */
const rememberedMs = 60 * 60_000;

export async function pullFailedLately(env: NodeJS.ProcessEnv, image: string, now: number): Promise<boolean> {
  return isRecent((await readFailures(env))[image], now);
}

export async function rememberPullFailure(env: NodeJS.ProcessEnv, image: string, now: number): Promise<void> {
  const failures = { ...(await readFailures(env)), [image]: now };
  await writeFile(await memoryPath(env), JSON.stringify(failures));
}

export function isRecent(failedAt: number | undefined, now: number): boolean {
  // A clock that was set back must not silence pulls for ever.
  return failedAt !== undefined && failedAt <= now && now - failedAt < rememberedMs;
}

async function readFailures(env: NodeJS.ProcessEnv): Promise<Record<string, number>> {
  try {
    const parsed: unknown = JSON.parse(await readFile(await memoryPath(env), 'utf8'));
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, number>) : {};
  } catch {
    return {}; // no memory yet, or a torn one: both mean that nothing is known
  }
}

async function memoryPath(env: NodeJS.ProcessEnv): Promise<string> {
  return join(await makeStateFolder(env), 'failed-pulls.json');
}
