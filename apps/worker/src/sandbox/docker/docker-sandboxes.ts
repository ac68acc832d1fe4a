import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { abortable } from '@shellfleet/concurrency';
import { KEEPER_PROTOCOL_VERSION } from '@shellfleet/keeper';
import { type DockerAllowances, type DockerPlan, planDocker, WORKSPACE_PATH } from '@shellfleet/policy';
import { type ResolvedSessionSpec, ShellfleetError } from '@shellfleet/protocol';
import Docker from 'dockerode';
import { deriveKeeperSecrets } from '../keeper-secrets.ts';
import { withRealWorkspace } from '../real-workspace.ts';
import type {
  FoundSandbox,
  KeeperLink,
  Sandbox,
  SandboxDeath,
  Sandboxes,
  SandboxTransport,
  SessionRef,
} from '../sandbox.ts';
import { sandboxName } from '../sandbox-name.ts';
import { openSessionFolders, type SessionFolders } from '../session-folder.ts';
import { AttachStream } from './attach-stream.ts';
import { HOSTS, HOSTS_FILE, KEEPER_FOLDER, toContainerOptions } from './container-options.ts';
import { DeathWatch } from './death-watch.ts';
import { type EngineAnswer, isConflict, isMissingImage, isNotFound, toShellfleetError } from './docker-errors.ts';
import { Images } from './images.ts';
import { hostFilter, parseLabels, type SandboxLabels, toLabels } from './labels.ts';
import { createTar, type TarEntry } from './tar.ts';
import { hasVolumes, openWorkspaceFolder } from './workspace-folder.ts';

const ENGINE_TIMEOUT_MS = 30_000;

export interface DockerSandboxesOptions {
  namespace: string;
  hostId: string;
  /** Secret of this host, from which the tokens of its keepers are derived. */
  hostKey: Buffer;
  /** Folder of this host for the keepers' folders. A short path, because unix sockets are in it. */
  folder: string;
  /** The keeper's binary. */
  keeperPath: string;
  transport: SandboxTransport;
  allowances: DockerAllowances;
  /** Path of the engine's socket. */
  socketPath: string;
}

export async function createDockerSandboxes(options: DockerSandboxesOptions): Promise<Sandboxes> {
  const docker = new Docker({ socketPath: options.socketPath });
  const folders = await openSessionFolders(options.folder, options.keeperPath, { [HOSTS_FILE]: HOSTS });
  return new DockerSandboxes(docker, folders, options);
}

class DockerSandboxes implements Sandboxes {
  readonly #docker: Docker;
  readonly #folders: SessionFolders;
  readonly #options: DockerSandboxesOptions;
  readonly #images: Images;
  readonly #deaths: DeathWatch;

  constructor(docker: Docker, folders: SessionFolders, options: DockerSandboxesOptions) {
    this.#docker = docker;
    this.#folders = folders;
    this.#options = options;
    this.#images = new Images(docker);
    this.#deaths = new DeathWatch(docker, hostFilter(options.namespace, options.hostId));
  }

  async check(): Promise<void> {
    const abortSignal = AbortSignal.timeout(ENGINE_TIMEOUT_MS);
    await this.#docker.listContainers({ limit: 1, abortSignal }).catch((error: unknown) => {
      throw toShellfleetError(error, 'asking whether it is there');
    });
  }

  async create(
    session: SessionRef,
    spec: ResolvedSessionSpec,
    options: { signal?: AbortSignal } = {},
  ): Promise<Sandbox> {
    const plan = planDocker(await withRealWorkspace(spec), this.#options.allowances);
    const { hostId, transport, allowances } = this.#options;
    const sandboxId = randomBytes(6).toString('hex');
    const labels = { session, hostId, sandboxId, transport, keeperProtocol: KEEPER_PROTOCOL_VERSION };
    const workspace = await openWorkspaceFolder(plan.workspace, allowances.workspaces, transport);
    const folder = await this.#folders.create(nameOf(labels));
    try {
      const request = {
        plan,
        workspaceIdentity: workspace.identity,
        shell: spec.shell ?? [],
        labels,
        folder: folder.path,
      };
      const containerId = await this.#createContainer(request, options.signal);
      const sandbox = this.#toSandbox(containerId, plan.image, labels, Date.now());
      void sandbox.died.then(() => workspace.close());
      await this.#checkVolumes(containerId, plan.image, workspace.identity)
        .then(() => this.#fill(containerId, plan, transport))
        .then(() => options.signal?.throwIfAborted())
        .catch(async (error: unknown) => {
          await sandbox.remove();
          throw error;
        });
      return sandbox;
    } catch (error) {
      await workspace.close();
      await folder.remove();
      throw toShellfleetError(error, 'to make a container', fromCreateAnswer);
    }
  }

  async list(): Promise<FoundSandbox[]> {
    const { namespace, hostId } = this.#options;
    const filters = { label: hostFilter(namespace, hostId) };
    const containers = await this.#docker
      .listContainers({ all: true, filters, abortSignal: AbortSignal.timeout(ENGINE_TIMEOUT_MS) })
      .catch((error: unknown) => {
        throw toShellfleetError(error, 'listing containers');
      });
    const found = containers.flatMap((container) => {
      const labels = parseLabels(container.Labels);
      if (!labels) return [];
      const state = toFoundState(container.State);
      const { Id, Image, Created } = container;
      const sandbox = this.#toSandbox(Id, Image, labels, Created * 1_000, state === 'running');
      return [{ sandbox, state, labels }];
    });
    await this.#folders.sweep(new Set(found.map(({ labels }) => nameOf(labels))));
    return found.map(({ sandbox, state }) => ({ sandbox, state }));
  }

  async close(): Promise<void> {
    await this.#deaths.close();
  }

  async #createContainer(
    made: {
      plan: DockerPlan;
      workspaceIdentity: string | undefined;
      shell: string[];
      labels: SandboxLabels;
      folder: string;
    },
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const { plan, workspaceIdentity, shell, labels, folder } = made;
    const request = toContainerOptions({
      plan,
      workspaceIdentity,
      shell,
      transport: labels.transport,
      secrets: deriveKeeperSecrets(this.#options.hostKey, labels.session, labels.sandboxId),
      labels: toLabels(labels),
      name: `shellfleet-${nameOf(labels)}`,
      keeperSource: isMounted(plan, labels.transport) ? folder : undefined,
    });
    // Not aborted: the engine would still create the container, and no process would remove it.
    const create = () =>
      this.#docker.createContainer({ ...request, abortSignal: AbortSignal.timeout(ENGINE_TIMEOUT_MS) });
    try {
      return (await create()).id;
    } catch (error) {
      if (!isMissingImage(error)) throw error;
      await abortable(this.#images.pull(plan.image), signal);
      return (await create()).id;
    }
  }

  /** WORKSPACE-2. */
  async #checkVolumes(containerId: string, image: string, workspaceIdentity: string | undefined): Promise<void> {
    if (workspaceIdentity === undefined) return;
    const { Mounts: mounts } = await this.#docker.getContainer(containerId).inspect();
    if (mounts.some(({ Type: type }) => type === 'volume')) throw hasVolumes(image);
  }

  /** Files that the container needs before it starts: a workspace owned by its user, which the engine would create as root. */
  async #fill(containerId: string, plan: DockerPlan, transport: SandboxTransport): Promise<void> {
    const entries: TarEntry[] = [];
    if (!plan.readOnlyRootfs && plan.workspace === undefined) {
      entries.push({ path: `${WORKSPACE_PATH.slice(1)}/`, mode: 0o755, ...plan.owner });
    }
    if (!isMounted(plan, transport)) {
      const folder = `${KEEPER_FOLDER.slice(1)}/`;
      const data = await this.#folders.keeper();
      entries.push({ path: folder, mode: 0o755, uid: 0, gid: 0 });
      entries.push({ path: `${folder}keeper`, mode: 0o555, uid: 0, gid: 0, data });
      entries.push({ path: 'etc/hosts', mode: 0o644, uid: 0, gid: 0, data: Buffer.from(HOSTS) });
    }
    if (entries.length === 0) return;
    await this.#docker.getContainer(containerId).putArchive(await createTar(entries), { path: '/' });
  }

  #toSandbox(containerId: string, image: string, labels: SandboxLabels, createdAt: number, isRunning = false): Sandbox {
    const container = this.#docker.getContainer(containerId);
    const folder = this.#folders.at(nameOf(labels));
    const died = Promise.withResolvers<SandboxDeath>();
    const watch = () => void this.#deaths.watch(containerId).then(died.resolve);
    if (isRunning) watch();
    return {
      id: labels.sandboxId,
      session: labels.session,
      containerId,
      description: `container ${containerId.slice(0, 12)} of the image ${image}`,
      createdAt,
      keeperProtocol: labels.keeperProtocol,
      link: this.#toLink(container, folder.socketPath, labels),
      died: died.promise,
      start: async () => {
        watch();
        await container.start({ abortSignal: AbortSignal.timeout(ENGINE_TIMEOUT_MS) }).catch((error: unknown) => {
          throw toShellfleetError(error, 'to start a container', (answer) => fromStartAnswer(answer, image));
        });
        // The container may have ended before the watch knew of its start.
        void this.#deaths.look(containerId).catch(() => undefined);
      },
      remove: async () => {
        await container.remove({ force: true, v: true }).catch((error: unknown) => {
          if (!isNotFound(error) && !isConflict(error)) throw toShellfleetError(error, 'removing a container');
        });
        await folder.remove();
        died.resolve({ reason: 'removed', exitCode: null });
      },
    };
  }

  #toLink(container: Docker.Container, path: string, labels: SandboxLabels): KeeperLink {
    const { token, syncWord } = deriveKeeperSecrets(this.#options.hostKey, labels.session, labels.sandboxId);
    if (labels.transport === 'socket') return { type: 'socket', path, token };
    const streams = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
    const open = () => container.attach(streams).then((socket) => new AttachStream(socket as Duplex));
    return { type: 'attach', token, syncWord, open };
  }
}

/** Over attach no folder of the host is mounted, because the engine may be on another machine. A read-only root accepts no archive. */
function isMounted(plan: DockerPlan, transport: SandboxTransport): boolean {
  return transport === 'socket' || plan.readOnlyRootfs;
}

function nameOf({ session, sandboxId }: SandboxLabels): string {
  return sandboxName(session, sandboxId);
}

function toFoundState(state: string): FoundSandbox['state'] {
  if (state === 'running' || state === 'paused') return 'running';
  return state === 'created' ? 'created' : 'dead';
}

function fromCreateAnswer(answer: EngineAnswer): ShellfleetError | undefined {
  if (!/bind source path does not exist/i.test(answer.message)) return undefined;
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The Docker engine does not see a folder that this worker wants to mount: ${answer.message}. A worker that runs in a container needs its state folder mounted at the same path as on the host; else set SHELLFLEET_TRANSPORT=attach.`,
    {},
    { cause: answer },
  );
}

function fromStartAnswer(answer: EngineAnswer, image: string): ShellfleetError | undefined {
  if (!/unable to find (user|group)|no matching entries in passwd/i.test(answer.message)) return undefined;
  return new ShellfleetError(
    'SESSION_START_FAILED',
    `The image ${image} does not know the user that the session asks for: ${answer.message}. Give a number (uid:gid), or choose another image.`,
    { image },
    { cause: answer },
  );
}
