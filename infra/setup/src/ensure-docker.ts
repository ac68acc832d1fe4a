import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isPidFileLive, startDetached, stopByPidFile } from './background-process.ts';
import { canInstallPackages, debianPackages, installPackages, type Report } from './debian-packages.ts';
import { readEngineVersion } from './docker-client.ts';
import { candidateDockerHosts, type DockerEndpoint, parseDockerHost } from './docker-endpoint.ts';
import { findProgram } from './run-program.ts';
import { SetupError } from './setup-error.ts';
import { makeStateDirectory, stateDirectory } from './state-directory.ts';

export type DockerEngine = { endpoint: DockerEndpoint; version: string; startedHere: boolean };

const ownDockerHost = 'unix:///var/run/docker.sock';
const startTimeoutMs = 60_000;

/** Finds a running Docker engine, or installs and starts one where that is possible. */
export async function ensureDocker(
  env: NodeJS.ProcessEnv,
  report: Report,
  signal?: AbortSignal,
): Promise<DockerEngine> {
  const found = await findDocker(env);
  if (found) return { ...found, startedHere: false };
  if (env.DOCKER_HOST) throw engineNotAnswering(env.DOCKER_HOST);
  if (process.platform !== 'linux' || process.getuid?.() !== 0) throw cannotStartEngine();
  if (!(await findProgram('dockerd'))) {
    if (!(await canInstallPackages())) throw cannotInstallEngine();
    await installPackages(debianPackages.docker, report);
  }
  signal?.throwIfAborted();
  return startDocker(env, report, signal);
}

/** Returns the first engine that answers. Does not start an engine. */
export async function findDocker(env: NodeJS.ProcessEnv): Promise<Omit<DockerEngine, 'startedHere'> | undefined> {
  for (const dockerHost of candidateDockerHosts(env, homedir())) {
    const endpoint = parseDockerHost(dockerHost);
    const version = endpoint && (await readEngineVersion(endpoint));
    if (version) return { endpoint, version };
  }
  return undefined;
}

/** Stops the engine that ensureDocker started, and no other. Returns true if there was one. */
export function stopDocker(env: NodeJS.ProcessEnv): Promise<boolean> {
  return stopByPidFile(pidPath(stateDirectory(env)), 'dockerd');
}

async function startDocker(
  env: NodeJS.ProcessEnv,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<DockerEngine> {
  report('Starting the Docker engine');
  const directory = await makeStateDirectory(env);
  const logPath = join(directory, 'dockerd.log');
  const dockerd = (await findProgram('dockerd')) ?? 'dockerd';
  const args = ['--host', ownDockerHost, '--live-restore'];
  await startDetached(dockerd, args, { logPath, pidPath: pidPath(directory) });
  const endpoint = parseDockerHost(ownDockerHost)!;
  for (const giveUpAt = Date.now() + startTimeoutMs; Date.now() < giveUpAt; await delay(100)) {
    const version = await readEngineVersion(endpoint);
    if (version) return { endpoint, version, startedHere: true };
    if (signal?.aborted || !(await isPidFileLive(pidPath(directory), 'dockerd'))) break;
  }
  await stopByPidFile(pidPath(directory), 'dockerd');
  signal?.throwIfAborted();
  const log = await readFile(logPath, 'utf8').catch(() => '');
  throw new SetupError(
    `The Docker engine did not start: ${lastEngineError(log)}`,
    `read ${logPath}, then start dockerd yourself`,
  );
}

/** Returns the line of an engine's log with the reason of its failure. */
export function lastEngineError(log: string): string {
  const lines = log.trim().split('\n').filter(Boolean);
  const failed = lines.findLast((line) => /failed to start daemon|level=(error|fatal)/.test(line));
  return (failed ?? lines.at(-1) ?? 'it left no log').slice(0, 500);
}

function pidPath(directory: string): string {
  return join(directory, 'dockerd.pid');
}

function engineNotAnswering(dockerHost: string): SetupError {
  return new SetupError(
    `DOCKER_HOST is ${dockerHost}, and no Docker engine answers there.`,
    'start that engine, or unset DOCKER_HOST',
  );
}

function cannotStartEngine(): SetupError {
  if (process.platform === 'darwin') return new SetupError('No Docker engine is running.', 'open -a Docker');
  return new SetupError(
    'No Docker engine answers, and only root can start one here.',
    'sudo systemctl start docker, and sudo usermod -aG docker $USER if this user may not reach it',
  );
}

function cannotInstallEngine(): SetupError {
  return new SetupError(
    'No Docker engine is installed, and this system is not a Debian that packages can be installed on.',
    'install Docker as https://docs.docker.com/engine/install says, then run this again',
  );
}
