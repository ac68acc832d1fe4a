import { createHash } from 'node:crypto';
import { keeperPath, launcherPath } from '@shellfleet/keeper';
import type { SessionImages } from '@shellfleet/policy';
import type { PolicyName } from '@shellfleet/protocol';
import type { WorkerConfig } from '../config/config.ts';
import type { HostMemory } from '../host/host-memory.ts';
import type { Logger } from '../log/logger.ts';
import { openBubblewrap } from './bubblewrap/bubblewrap-enclosure.ts';
import { openCodex } from './codex/codex-enclosure.ts';
import { createDockerSandboxes } from './docker/create-docker-sandboxes.ts';
import { readLogin } from './docker/registry-logins.ts';
import { type Enclosure, noEnclosure } from './host/enclosure.ts';
import { createHostSandboxes, type HostSandboxes } from './host/host-sandboxes.ts';
import { KubernetesSandboxes } from './kubernetes/kubernetes-sandboxes.ts';
import { createPolicySandboxes } from './policy-sandboxes.ts';
import type { Sandboxes, SandboxTransport } from './sandbox.ts';

/** Most processes of one session. It equals the kernel's limit on most machines. */
const MOST_PIDS = 32_768;
const CONTROL_GROUPS = '/sys/fs/cgroup';

export interface SandboxDirectories {
  hostId: string;
  hostKey: Buffer;
  sandboxes: string;
  /** Path of the file that records the images that this host pulled. */
  imageRecord: string;
  /** Parent of one directory for each policy without containers. */
  hostSandboxes: string;
  bubblewrapSandboxes: string;
  codexSandboxes: string;
}

/** The settings, with the transport that was chosen for `auto`, and the seal keys of the state directory. */
type ChosenConfig = Omit<WorkerConfig, 'transport' | 'sealKeys'> & {
  transport: SandboxTransport;
  sealKeys: string[];
  sessionImages?: SessionImages | undefined;
  hostMemory?: HostMemory;
};

/** Opens exactly the policies that the operator lists. Only the docker policy needs an engine. Throws if one fails. */
export async function openPolicies(
  config: ChosenConfig,
  directories: SandboxDirectories,
  logger: Logger,
): Promise<Sandboxes> {
  const offered: Partial<Record<PolicyName, Sandboxes>> = {};
  for (const policy of config.policies) offered[policy] = await OPENERS[policy](config, directories, logger);
  const sandboxes = createPolicySandboxes(offered);
  await sandboxes.check().catch(async (error: unknown) => {
    await sandboxes.close();
    throw error;
  });
  return sandboxes;
}

type Opener = (config: ChosenConfig, directories: SandboxDirectories, logger: Logger) => Promise<Sandboxes>;

const OPENERS: Record<PolicyName, Opener> = {
  docker: openDocker,
  host: openHost,
  bubblewrap: openBubblewrapHost,
  codex: openCodexHost,
  kubernetes: openKubernetes,
};

export async function openDocker(
  config: Omit<ChosenConfig, 'sealKeys'>,
  { hostId, hostKey, sandboxes, imageRecord }: SandboxDirectories,
  logger: Logger,
): Promise<Sandboxes> {
  return createDockerSandboxes({
    namespace: config.namespace,
    hostId,
    hostKey,
    directory: sandboxes,
    keeperPath: await keeperPath(),
    transport: config.transport,
    socketPath: config.dockerSocketPath,
    ...(config.uids === undefined ? {} : { uids: config.uids }),
    keep: config.keep,
    images: {
      recordPath: imageRecord,
      budget: config.file.images,
      prepull: config.file.images.prepull,
      login: (registry) => readLogin(registry, config.registryLogins),
    },
    disk: { limitBytes: config.diskBytes, leastFreeBytes: config.leastFree.diskBytes },
    ...(config.hostMemory === undefined ? {} : { hostMemory: config.hostMemory }),
    logger,
    allowances: {
      images: config.images,
      defaultImage: config.defaultImage,
      sessionImages: config.sessionImages,
      users: config.users,
      workspaces: config.workspaces,
      bounds: toSessionBounds(config),
      kept: config.keep.containers,
      runtimes: config.file.allow.runtimes,
      sandbox: config.file.allow,
      redactFormats: config.redactFormats,
    },
  });
}

export function openHost(config: WorkerConfig, { hostKey, hostSandboxes }: SandboxDirectories): Promise<HostSandboxes> {
  return openOnHost(config, hostKey, hostSandboxes);
}

export async function openBubblewrapHost(
  config: WorkerConfig,
  { hostKey, bubblewrapSandboxes }: SandboxDirectories,
): Promise<HostSandboxes> {
  return openOnHost(config, hostKey, bubblewrapSandboxes, await openBubblewrap(bubblewrapSandboxes));
}

export async function openCodexHost(
  config: WorkerConfig,
  { hostKey, codexSandboxes }: SandboxDirectories,
): Promise<HostSandboxes> {
  const { configOverrides } = config.file.codex;
  return openOnHost(
    config,
    hostKey,
    codexSandboxes,
    await openCodex({ program: config.codexProgram, configOverrides }),
  );
}

async function openKubernetes(
  config: ChosenConfig,
  { hostId }: SandboxDirectories,
  logger: Logger,
): Promise<Sandboxes> {
  const { kubernetes: cluster, sealKeys, namespace, images, defaultImage, sessionImages, redactFormats } = config;
  if (cluster === undefined) throw new Error('the settings have no cluster');
  const sandbox = config.file.allow;
  const allowances = { cluster, images, defaultImage, sessionImages, sandbox, redactFormats };
  return new KubernetesSandboxes({
    namespace,
    hostId,
    api: cluster.api,
    allowances,
    sealKeys,
    probes: cluster.probes,
    logger,
  });
}

/** Opens a policy without containers. Each has its own directory, because it removes unused control groups there. */
async function openOnHost(
  config: WorkerConfig,
  hostKey: Buffer,
  directory: string,
  enclosure: Enclosure = noEnclosure,
): Promise<HostSandboxes> {
  const id = createHash('sha256').update(hostKey).digest('hex').slice(0, 12);
  return createHostSandboxes({
    namespace: config.namespace,
    hostKey,
    directory,
    enclosure,
    keeperPath: await keeperPath(),
    launcherPath: await launcherPath(),
    user: config.hostUser,
    workspaces: config.workspaces,
    bounds: toSessionBounds(config),
    sandbox: config.file.allow,
    redactFormats: config.redactFormats,
    controlGroups: {
      top: CONTROL_GROUPS,
      below: `shellfleet/${id}${enclosure === noEnclosure ? '' : enclosure.policy}`,
    },
    hidden: [config.stateDirectory],
    sockets: [config.dockerSocketPath],
  });
}

/** Returns the most memory, CPUs and processes of this host that one session may have. */
export function toSessionBounds(config: Pick<WorkerConfig, 'hostMemoryBytes' | 'hostCpus'>): {
  memoryBytes: number;
  cpus: number;
  pids: number;
} {
  return { memoryBytes: config.hostMemoryBytes, cpus: config.hostCpus, pids: MOST_PIDS };
}
