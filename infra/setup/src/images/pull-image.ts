import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Report } from '../debian-packages.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { makeStateDirectory } from '../state-directory.ts';
import { pullImage } from './image-store.ts';

/** Time for which a failed pull is not retried, so that a rerun does not wait for it again. */
const rememberedMs = 60 * 60_000;

// Longest silence of a registry. A reachable one keeps sending progress.
const pullSilenceMs = 10_000;

export type PullDeps = {
  endpoint: DockerEndpoint;
  env: NodeJS.ProcessEnv;
  report: Report;
  signal?: AbortSignal | undefined;
};

/** Pulls the image, unless the last attempt failed recently. Returns the reason when the image is not available. */
export async function pullReporting(
  { endpoint, env, report, signal }: PullDeps,
  image: string,
): Promise<string | undefined> {
  if (await pullFailedLately(env, image, Date.now())) return 'the last try failed less than an hour ago';
  report(`Pulling ${image}`);
  try {
    await pullImage(endpoint, image, { silenceMs: pullSilenceMs, signal });
    return undefined;
  } catch (error) {
    signal?.throwIfAborted();
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
  // A clock that was set back must not prevent pulls forever.
  return failedAt !== undefined && failedAt <= now && now - failedAt < rememberedMs;
}

async function readFailures(env: NodeJS.ProcessEnv): Promise<Record<string, number>> {
  try {
    const parsed: unknown = JSON.parse(await readFile(await memoryPath(env), 'utf8'));
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, number>) : {};
  } catch {
    return {}; // missing or incomplete file: no failures are recorded
  }
}

async function memoryPath(env: NodeJS.ProcessEnv): Promise<string> {
  return join(await makeStateDirectory(env), 'failed-pulls.json');
}
