import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Report } from '../debian-packages.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { makeStateFolder } from '../state-folder.ts';
import { pullImage } from './image-store.ts';

/** For how long a failed pull is not tried again: a rerun on a machine without a registry must not wait for it again. */
const rememberedMs = 60 * 60_000;

// A registry that is not there shows as silence or as an error at once; one that is there keeps talking.
const pullSilenceMs = 10_000;

export type PullDeps = { endpoint: DockerEndpoint; env: NodeJS.ProcessEnv; report: Report };

/** Pulls, unless the last try failed lately. Answers with the reason when there is no image in the end. */
export async function pullReporting({ endpoint, env, report }: PullDeps, image: string): Promise<string | undefined> {
  if (await pullFailedLately(env, image, Date.now())) return 'the last try failed less than an hour ago';
  report(`Pulling ${image}`);
  try {
    await pullImage(endpoint, image, pullSilenceMs);
    return undefined;
  } catch (error) {
    await rememberPullFailure(env, image, Date.now());
    report(`${image} cannot be pulled here`);
    return error instanceof Error ? error.message : String(error);
  }
}

async function pullFailedLately(env: NodeJS.ProcessEnv, image: string, now: number): Promise<boolean> {
  return isRecent((await readFailures(env))[image], now);
}

async function rememberPullFailure(env: NodeJS.ProcessEnv, image: string, now: number): Promise<void> {
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
