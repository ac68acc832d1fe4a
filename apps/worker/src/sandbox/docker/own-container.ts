import { posix } from 'node:path';
import type { DockerPlan } from '@shellfleet/policy';
import { ShellfleetError } from '@shellfleet/protocol';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { WORKSPACE_VARIABLE } from './container-options.ts';
import type { Engine } from './engine.ts';
import { parseLabels } from './labels.ts';
import type { WorkspaceDirectory } from './workspace-directory.ts';

// Reads the container of a session, so that its second container (SANDBOX-4) gets the same image and directory even if
// their names now mean others.

/** PATH that runc sets in a container whose image has none. */
const USUAL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/**
 * Directories that a container's session can write to, wherever they are mounted. Links in the image are not resolved,
 * because the session cannot change them.
 */
const WRITABLE = ['/workspace', '/tmp', '/var/tmp', '/dev', '/proc', '/run', '/var/run'];
/** Variables with files that a shell reads before its first command. */
const READ_BY_SHELLS = ['BASH_ENV', 'ENV'];

export interface OwnContainer {
  /** Digest of the image. Its name may mean another image by now. */
  image: string;
  /** Directory of the host that is mounted as the workspace, and the identity with which it was opened. */
  workspace: { path: string; identity: string | undefined } | undefined;
  env: readonly string[];
  /** Uid of the container's processes, if each session has its own uid. */
  uid: number | undefined;
}

export async function readOwnContainer(engine: Engine, name: string, target: string): Promise<OwnContainer> {
  const inspect = (docker: Docker, abortSignal: AbortSignal) => docker.getContainer(name).inspect({ abortSignal });
  const { Image: image, Config: config, HostConfig: host } = await engine.call(inspect);
  const env = config.Env ?? [];
  // Compares the mount as it was requested, because an engine in a virtual machine reports another path.
  const mounted = host.Mounts?.find(({ Target: at }) => at === target);
  const identity = variable(env, WORKSPACE_VARIABLE)?.split(':').slice(0, 2).join(':');
  const workspace = mounted === undefined ? undefined : { path: mounted.Source, identity };
  return { image, env, workspace, uid: parseLabels(config.Labels)?.uid };
}

/** Throws SANDBOX_UNAVAILABLE when the opened directory is not that of the session. */
export function checkOwnWorkspace(
  { workspace: own }: OwnContainer,
  { workspace }: DockerPlan,
  { identity }: WorkspaceDirectory,
): void {
  if (own !== undefined && own.path === workspace?.path && own.identity === identity) return;
  const message = 'is another directory now than the one that the session has';
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The directory ${workspace?.path} was replaced while the session has it, so no other sandbox can have the same. Nothing was run.`,
    { issues: [{ path: 'workspace', message }] },
  );
}

/**
 * Returns variables with which a second container (workspace at `target`) loads nothing from the session's directories.
 */
export function safeEnv({ env }: Pick<OwnContainer, 'env'>, target: string): string[] {
  const isSafe = (directory: string) => isOutside(directory, [target, ...WRITABLE]);
  const path = (variable(env, 'PATH') ?? '').split(':').filter(isSafe).join(':');
  const names = env.map((pair) => pair.slice(0, pair.indexOf('=')));
  const emptied = names.filter(
    (name) =>
      READ_BY_SHELLS.includes(name) ||
      (name.startsWith('LD_') && !(variable(env, name) ?? '').split(/[:\s]+/).every(isSafe)),
  );
  return [`PATH=${path === '' ? USUAL_PATH : path}`, ...emptied.map((name) => `${name}=`)];
}

function isOutside(directory: string, others: readonly string[]): boolean {
  if (!directory.startsWith('/')) return false;
  const path = posix.normalize(`${directory}/`);
  return !others.some((other) => path.startsWith(`${other}/`));
}

function variable(env: readonly string[], name: string): string | undefined {
  return env.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}
