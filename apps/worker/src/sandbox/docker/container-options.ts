import { type DockerPlan, sessionSeccompProfile, WORKSPACE_PATH } from '@shellfleet/policy';
import type { ContainerCreateOptions, HostConfig } from '@shellfleet/vendor/dockerode';
import { egressEnv } from '../egress-env.ts';
import type { KeeperSecrets } from '../keeper-secrets.ts';
import type { SandboxTransport } from '../sandbox.ts';

// Translates a docker plan into the engine's options. Every option that hardens a container is in this file.

/** File that defines `localhost`. Without its network code, the engine writes no hosts file. */
export const HOSTS_FILE = 'hosts';
/** File of users, in the directory of a session with its own uid. */
export const PASSWD_FILE = 'passwd';
export const HOSTS = '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n';
/** Read-only mount point of the host's directory with the keeper. */
export const KEEPER_DIRECTORY = '/.shellfleet';
/** The keeper's directory for scripts of commands and the FIFOs of their output. */
const RUN_DIRECTORY = '/run/shellfleet';

/** Variable with the identity of the workspace directory and its mount point, which the keeper compares. */
export const WORKSPACE_VARIABLE = 'SF_WORKSPACE';

const MIB = 1024 * 1024;
/** Size of the run directory. Commands, inputs and file parts take 1 MiB at most; a saved shell state may take more. */
const RUN_DIRECTORY_BYTES = 16 * MIB;

export interface ContainerRequest {
  plan: DockerPlan;
  /** Digest of the image (IMAGE-NAME-1). */
  image: string;
  /** Identity of the directory that is mounted as the workspace, for the keeper. */
  workspaceIdentity: string | undefined;
  transport: SandboxTransport;
  secrets: KeeperSecrets;
  labels: Record<string, string>;
  name: string;
  /** Network mode for the engine: a network id, or `none`. */
  network: string;
  /** Directory of the host to mount at KEEPER_DIRECTORY. Without it, the keeper is copied in. */
  keeperSource: string | undefined;
  /** True when `keeperSource` has a file of users. */
  hasPasswd: boolean;
  shell: string[];
  /** Mount points of tmpfs directories that replace the image's volumes. */
  volumes: readonly string[];
  /** Further variables, `NAME=value`, which override those of the image. Default: none. */
  env?: string[] | undefined;
}

const SECCOMP = JSON.stringify(sessionSeccompProfile());

export function toContainerOptions(request: ContainerRequest): ContainerCreateOptions {
  const { plan, image, workspaceIdentity, transport, secrets, shell, env } = request;
  const overAttach = transport === 'attach';
  return {
    name: request.name,
    Image: image,
    Labels: request.labels,
    // Only SF_TOKEN and SF_SYNC are secrets, and they are only in the environment. The keeper wipes them before the
    // shell starts (SANDBOX-2).
    Env: [
      ...(env ?? []),
      `HOME=${WORKSPACE_PATH}`,
      `SF_TOKEN=${secrets.token}`,
      ...(overAttach ? [`SF_SYNC=${secrets.syncWord}`] : []),
      ...(workspaceIdentity === undefined
        ? []
        : [`${WORKSPACE_VARIABLE}=${workspaceIdentity}:${plan.workspace?.target}`]),
      ...(plan.network === 'limited' ? Object.entries(egressEnv(KEEPER_DIRECTORY)).map((pair) => pair.join('=')) : []),
    ],
    Entrypoint: [`${KEEPER_DIRECTORY}/keeper`, overAttach ? '-' : `${KEEPER_DIRECTORY}/socket`],
    Cmd: shell,
    // The runtime would create a missing directory as root, in a directory of the host. The shell enters the spec's
    // directory later.
    WorkingDir: plan.workspace === undefined ? plan.cwd : WORKSPACE_PATH,
    ...(plan.user === undefined ? {} : { User: plan.user }),
    Tty: false,
    OpenStdin: overAttach,
    StdinOnce: false,
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    // The runtime creates a network namespace that has only a loopback. The mode `none` would run the engine's network
    // code at each start and end, which is slow, and deadlocks in Docker 20.10 when many containers end together.
    NetworkDisabled: plan.network !== 'full',
    Healthcheck: { Test: ['NONE'] },
    StopTimeout: 1,
    HostConfig: toHostConfig(request),
  };
}

function toHostConfig({ plan, network, keeperSource, hasPasswd, volumes }: ContainerRequest): HostConfig {
  return {
    // The keeper is PID 1 and reaps processes.
    Init: false,
    ...(plan.runtime === undefined ? {} : { Runtime: plan.runtime }),
    // The exit code and the engine's out-of-memory flag are read after the container's end.
    AutoRemove: false,
    RestartPolicy: { Name: 'no' },
    LogConfig: { Type: 'none', Config: {} },
    Privileged: false,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges:true', `seccomp=${SECCOMP}`],
    NetworkMode: network,
    IpcMode: 'private',
    PublishAllPorts: false,
    PidsLimit: plan.limits.pids,
    Memory: plan.limits.memoryBytes,
    // Equal to Memory: no swap.
    MemorySwap: plan.limits.memoryBytes,
    NanoCpus: Math.round(plan.limits.cpus * 1e9),
    ...(plan.limits.diskBytes === undefined ? {} : { StorageOpt: { size: String(plan.limits.diskBytes) } }),
    // When the host runs out of memory, the kernel kills sessions before the worker. The shell has a higher score (500)
    // than the keeper, so it is killed first.
    OomScoreAdj: 200,
    Ulimits: [
      { Name: 'core', Soft: 0, Hard: 0 },
      { Name: 'nofile', Soft: 1024, Hard: 4096 },
      ...(plan.limits.fileSizeBytes === undefined
        ? []
        : [{ Name: 'fsize', Soft: plan.limits.fileSizeBytes, Hard: plan.limits.fileSizeBytes }]),
    ],
    ReadonlyRootfs: plan.readOnlyRootfs,
    Tmpfs: toTmpfs(plan, volumes),
    Mounts: [
      ...(keeperSource === undefined
        ? []
        : [bind(keeperSource, KEEPER_DIRECTORY, true), bind(`${keeperSource}/${HOSTS_FILE}`, '/etc/hosts', true)]),
      ...(keeperSource === undefined || !hasPasswd
        ? []
        : [bind(`${keeperSource}/${PASSWD_FILE}`, '/etc/passwd', true)]),
      ...(plan.workspace === undefined
        ? []
        : [bind(plan.workspace.path, plan.workspace.target, plan.workspace.readOnly)]),
    ],
  };
}

function toTmpfs(plan: DockerPlan, volumes: readonly string[]): Record<string, string> {
  const { readOnlyRootfs, readOnlyWorkspace, workspace, owner, limits } = plan;
  // Pages of a tmpfs count as memory of the container, so a session can hardly use more than half of the limit.
  const half = Math.floor(limits.memoryBytes / 2);
  const owned = (access: 'ro' | 'rw') =>
    `${access},nosuid,nodev,exec,size=${half},mode=0755,uid=${owner.uid},gid=${owner.gid}`;
  const isReadOnly = readOnlyRootfs && readOnlyWorkspace;
  return {
    ...Object.fromEntries(volumes.map((directory) => [directory, owned(isReadOnly ? 'ro' : 'rw')])),
    ...(readOnlyRootfs || volumes.includes('/tmp')
      ? { '/tmp': `rw,nosuid,nodev,exec,size=${Math.min(half, 64 * MIB)},mode=1777` }
      : {}),
    ...(readOnlyRootfs && workspace?.target !== WORKSPACE_PATH
      ? { [WORKSPACE_PATH]: owned(readOnlyWorkspace ? 'ro' : 'rw') }
      : {}),
    [RUN_DIRECTORY]: `rw,nosuid,nodev,noexec,size=${RUN_DIRECTORY_BYTES},mode=1777`,
  };
}

/** Returns a mount as an object, because the `source:target` form is ambiguous for paths with a colon. */
function bind(source: string, target: string, readOnly: boolean): NonNullable<HostConfig['Mounts']>[number] {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: readOnly, BindOptions: { Propagation: 'rprivate' } };
}
