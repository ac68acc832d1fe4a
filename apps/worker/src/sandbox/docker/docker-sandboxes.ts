import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { abortable, withResolvers } from '@shellfleet/concurrency';
import { KEEPER_PROTOCOL_VERSION } from '@shellfleet/keeper';
import { type DockerAllowances, type DockerPlan, planDocker, WORKSPACE_PATH } from '@shellfleet/policy';
import { parseKeyspace, type ResolvedSessionSpec } from '@shellfleet/protocol';
import type { Logger } from 'pino';
import { deriveKeeperSecrets } from '../keeper-secrets.ts';
import { makeWorkspace } from '../make-workspace.ts';
import { withRealWorkspace } from '../real-workspace.ts';
import {
  type Beside,
  type CreateOptions,
  type FoundSandbox,
  type HostLimits,
  type KeptContainer,
  MissingImage,
  type Sandbox,
  type SandboxDeath,
  type Sandboxes,
  type SandboxImage,
  type SandboxTransport,
  type SessionRef,
} from '../sandbox.ts';
import { sandboxName } from '../sandbox-name.ts';
import { openSessionDirectories, type SessionDirectories } from '../session-directory.ts';
import { ContainerDisks } from './container-disks.ts';
import { isMounted, listFiles, putFiles } from './container-files.ts';
import { HOSTS, HOSTS_FILE, PASSWD_FILE, toContainerOptions } from './container-options.ts';
import { readProcessorMs } from './container-processor.ts';
import { createContainer } from './create-container.ts';
import { DeathWatch } from './death-watch.ts';
import { readDiskQuota } from './disk-quota.ts';
import type { DiskBounds } from './disk-watch.ts';
import { fromCreateReply, fromStartReply, isMissingImage, toShellfleetError } from './docker-errors.ts';
import { Engine, type EngineTimes } from './engine.ts';
import { type FoundImage, findImage } from './find-image.ts';
import { type FoundContainer, listContainers, listFleets, removeContainer } from './found-containers.ts';
import { ensureFullNetwork } from './full-network.ts';
import { HostImages, type HostImagesOptions } from './host-images.ts';
import { withImageDirectory } from './image-directory.ts';
import { ImageUsers } from './image-users.ts';
import { checkVolumes, planVolumes } from './image-volumes.ts';
import { toKeeperLink } from './keeper-link.ts';
import { beyondBounds, keepContainer, keptAtOf } from './kept-containers.ts';
import { hostFilter, ofFleet, ofHost, ofNamespace, type SandboxLabels, toLabels } from './labels.ts';
import { checkOwnWorkspace, type OwnContainer, readOwnContainer, safeEnv } from './own-container.ts';
import { Runtimes } from './runtimes.ts';
import { SessionPasswd } from './session-passwd.ts';
import { SessionUids, type UidRange } from './session-uids.ts';
import { withoutSharedDirectory, withoutUid } from './unavailable.ts';
import { hasVolumes, openWorkspaceDirectory } from './workspace-directory.ts';

export interface DockerSandboxesOptions {
  /** Keyspace of the fleet. */
  namespace: string;
  hostId: string;
  /** Secret of this host, from which the tokens of its keepers are derived. */
  hostKey: Buffer;
  /** Parent of the keepers' directories. Its path must be short, because unix sockets are in it. */
  directory: string;
  keeperPath: string;
  transport: SandboxTransport;
  allowances: Omit<DockerAllowances, 'bounds' | 'ownUids'> & { bounds: Omit<DockerAllowances['bounds'], 'diskQuota'> };
  socketPath: string;
  /** Range from which each session gets its own uid. Default: all sessions share one uid. */
  uids?: UidRange;
  /** Bounds of what is kept for a post-mortem. Default: nothing is kept. */
  keep?: { containers: number; ageMs: number };
  disk?: DiskBounds;
  /** Record, budget and logins of images. Default: a record beside `directory`, no budget and no logins. */
  images?: HostImagesOptions;
  logger?: Logger;
  engineTimes?: EngineTimes;
}

interface PlannedImage {
  plan: DockerPlan;
  image: FoundImage;
}

export async function createDockerSandboxes(options: DockerSandboxesOptions): Promise<Sandboxes> {
  const engine = new Engine(options.socketPath, options.logger, options.engineTimes);
  const directories = await openSessionDirectories(options.directory, options.keeperPath, { [HOSTS_FILE]: HOSTS });
  const { logger, allowances } = options;
  const disks = new ContainerDisks(engine, options.disk ?? USUAL_DISK, logger);
  const readSpace = () => disks.readSpace();
  const usual = { recordPath: `${options.directory}-images.json`, prepull: [], login: async () => undefined };
  const images = await HostImages.open({
    budget: {},
    ...usual,
    ...options.images,
    engine,
    names: allowances,
    readSpace,
    logger,
  });
  return new DockerSandboxes({ engine, directories, disks, images }, options);
}

const USUAL_DISK: DiskBounds = { limitBytes: undefined, leastFreeBytes: undefined };

interface Parts {
  engine: Engine;
  directories: SessionDirectories;
  disks: ContainerDisks;
  images: HostImages;
}

class DockerSandboxes implements Sandboxes {
  readonly #engine: Engine;
  readonly #directories: SessionDirectories;
  readonly #options: DockerSandboxesOptions;
  readonly images: HostImages;
  readonly #runtimes: Runtimes;
  readonly #deaths: DeathWatch;
  readonly #disks: ContainerDisks;
  readonly #uids: SessionUids | undefined;
  readonly #passwd: SessionPasswd;
  readonly #imageUsers: ImageUsers;
  /** Names, by id, of the sandboxes that this process creates or uses. All others are leftovers. */
  readonly #used = new Map<string, string>();

  constructor({ engine, directories, disks, images }: Parts, options: DockerSandboxesOptions) {
    this.#engine = engine;
    this.#directories = directories;
    this.#options = options;
    this.images = images;
    this.#runtimes = new Runtimes(engine);
    this.#deaths = new DeathWatch(engine, hostFilter(options.namespace, options.hostId));
    this.#uids = options.uids && new SessionUids(options.uids);
    this.#passwd = new SessionPasswd(engine);
    this.#imageUsers = new ImageUsers(this.#passwd, options.allowances.users);
    this.#disks = disks;
  }

  async check(): Promise<void> {
    await this.#engine
      .call((docker, abortSignal) => docker.listContainers({ limit: 1, abortSignal }))
      .catch((error: unknown) => {
        throw toShellfleetError(error, 'asking whether it is there');
      });
    if ((this.#options.allowances.runtimes ?? []).length > 0) await this.#runtimes.probe();
  }

  async create(session: SessionRef, spec: ResolvedSessionSpec, options: CreateOptions = {}): Promise<Sandbox> {
    const { beside, signal } = options;
    const diskQuota = spec.limits?.diskBytes !== undefined && (await readDiskQuota(this.#engine));
    const { bounds, ...allowed } = this.#options.allowances;
    const allowances = {
      ...{ ...allowed, ownUids: this.#uids !== undefined, bounds: { ...bounds, diskQuota } },
      ...(beside === undefined ? {} : { sandbox: beside.allowances }),
    };
    const plan = planDocker(await withRealWorkspace(spec), allowances);
    await this.#runtimes.require(plan.runtime);
    if (plan.network === 'limited' && this.#options.transport === 'attach') throw withoutSharedDirectory();
    if (beside !== undefined) return this.#createBeside(session, spec, plan, beside, signal);
    const otherwise = plan.otherwiseImage === undefined ? [] : [plan.otherwiseImage];
    const image = await findImage(this.#engine, [plan.image, ...otherwise], options.image);
    const asked = { plan: { ...plan, image: image.name }, image };
    return this.images.using(image.digest, () => this.#create(session, spec, asked, signal));
  }

  async #createBeside(
    session: SessionRef,
    spec: ResolvedSessionSpec,
    plan: DockerPlan,
    { sandboxId }: Beside,
    signal: AbortSignal | undefined,
  ): Promise<Sandbox> {
    const name = `shellfleet-${sandboxName(session, sandboxId)}`;
    const own = await readOwnContainer(this.#engine, name, plan.workspace?.target ?? WORKSPACE_PATH).catch(
      (error: unknown) => {
        throw toShellfleetError(error, "reading a session's own container");
      },
    );
    const image = await findImage(this.#engine, [own.image]);
    return this.#create(session, spec, { plan: { ...plan, image: own.image }, image }, signal, { ...own, sandboxId });
  }

  /** Creates a container. `own` is the session's first container when the new one is the second. */
  async #create(
    session: SessionRef,
    spec: ResolvedSessionSpec,
    asked: PlannedImage,
    signal: AbortSignal | undefined,
    own?: OwnContainer & { sandboxId: string },
  ): Promise<Sandbox> {
    const { hostId, transport } = this.#options;
    const { image } = asked;
    const planned = withImageDirectory(asked.plan, image);
    const sandboxId = randomBytes(6).toString('hex');
    const uid = spec.user === undefined ? (own?.uid ?? this.#takeUid(sandboxId)) : undefined;
    const labels = {
      ...{ session, hostId, sandboxId, transport, keeperProtocol: KEEPER_PROTOCOL_VERSION, image: image.name },
      ...(uid === undefined ? {} : { uid }),
      ...(own === undefined ? {} : { beside: own.sandboxId }),
    };
    const { plan, volumes, workspace } = await this.#prepare({ plan: planned, image }, labels, own === undefined).catch(
      (error: unknown) => {
        this.#uids?.release(sandboxId);
        throw error;
      },
    );
    const isCompared = workspace.identity !== undefined;
    this.#used.set(sandboxId, nameOf(labels));
    try {
      if (own !== undefined) checkOwnWorkspace(own, plan, workspace);
      if (isCompared && volumes.length > 0) throw hasVolumes(plan.image);
      const directory = await this.#directories.create(nameOf(labels));
      const request = {
        plan,
        image: image.digest,
        workspaceIdentity: workspace.identity,
        shell: spec.shell ?? [],
        labels,
        directory: directory.path,
        passwd: await this.#writePasswd(image.digest, labels, directory.path),
        env: own && safeEnv(own, plan.workspace?.target ?? WORKSPACE_PATH),
        volumes,
      };
      const containerId = await this.#createContainer(request);
      const sandbox = this.#toSandbox(containerId, image, labels, Date.now());
      void sandbox.died.then(() => workspace.close());
      await checkVolumes(this.#engine, containerId, plan.image, { directories: volumes, isCompared })
        .then(() => listFiles(plan, request.passwd, transport, () => this.#directories.keeper()))
        .then((files) => putFiles(this.#engine, containerId, files))
        .then(() => signal?.throwIfAborted())
        .catch(async (error: unknown) => {
          await sandbox.remove();
          throw error;
        });
      return sandbox;
    } catch (error) {
      this.#used.delete(sandboxId);
      this.#uids?.release(sandboxId);
      await workspace.close();
      await this.#directories.at(nameOf(labels)).remove();
      if (isMissingImage(error)) throw new MissingImage(plan.image);
      throw error instanceof MissingImage ? error : toShellfleetError(error, 'to make a container', fromCreateReply);
    }
  }

  /**
   * Opens the workspace directory last. If a session replaces the directory between this and the mount, the start
   * fails.
   */
  async #prepare({ plan: planned, image }: PlannedImage, labels: SandboxLabels, makesWorkspace: boolean) {
    const { allowances } = this.#options;
    const { uid, transport } = labels;
    const plan =
      uid === undefined
        ? await this.#imageUsers.resolve(planned, image, toReader(labels))
        : { ...planned, user: `${uid}:${uid}`, owner: { uid, gid: uid } };
    const volumes = planVolumes(plan.image, Object.keys(image.config.Volumes ?? {}), plan.workspace?.target);
    if (plan.workspace !== undefined && transport === 'socket' && makesWorkspace)
      await makeWorkspace(plan.workspace.path, allowances.workspaces, plan.owner);
    const workspace = await openWorkspaceDirectory(plan.workspace?.path, allowances.workspaces, transport);
    return { plan, volumes, workspace };
  }

  async list(): Promise<FoundSandbox[]> {
    const containers = await listContainers(this.#engine, ofHost(this.#options.hostId));
    // All fleets that this host was ever part of share its directories.
    await this.#directories.sweep(new Set(containers.map(({ labels }) => nameOf(labels))));
    const own = containers.filter(
      (one) => one.labels.session.namespace === this.#options.namespace && keptAtOf(one) === undefined,
    );
    return own.map(({ labels, Id, Image, ImageID, Created, State }) => {
      const state = toFoundState(State);
      const image = { name: labels.image ?? Image, digest: ImageID };
      this.#used.set(labels.sandboxId, nameOf(labels));
      if (labels.beside !== undefined)
        return { sandbox: this.#toSandbox(Id, image, labels, Created * 1_000), state: 'beside' };
      if (labels.uid !== undefined) this.#uids?.keep(labels.sandboxId, labels.uid);
      return { sandbox: this.#toSandbox(Id, image, labels, Created * 1_000, state === 'running'), state };
    });
  }

  async pull(image: string, signal?: AbortSignal): Promise<void> {
    await abortable(this.images.pull(image), signal);
  }

  async limits(): Promise<HostLimits> {
    return { diskQuota: await readDiskQuota(this.#engine) };
  }

  missingRuntimes(): string[] {
    return this.#runtimes.lacking(this.#options.allowances.runtimes ?? []);
  }

  async otherFleets(): Promise<string[]> {
    const { namespace } = this.#options;
    const own = parseKeyspace(namespace).fleetId;
    return (await listFleets(this.#engine, ofNamespace(namespace))).filter((fleetId) => fleetId !== own);
  }

  problem(): string | undefined {
    return this.#engine.problem ?? this.#disks.problem;
  }

  async sweep(isGone: (hostId: string) => Promise<boolean>): Promise<number> {
    const { namespace, hostId } = this.#options;
    const containers = await listContainers(this.#engine, ofFleet(namespace));
    const goneHosts = new Map<string, boolean>();
    for (const { labels } of containers) {
      if (labels.hostId === hostId || goneHosts.has(labels.hostId)) continue;
      goneHosts.set(labels.hostId, await isGone(labels.hostId));
    }
    const isLeftover = ({ labels }: FoundContainer) =>
      labels.hostId === hostId ? !this.#used.has(labels.sandboxId) : goneHosts.get(labels.hostId) === true;
    // The kept containers of a host that is gone are removed too.
    const leftovers = containers.filter(
      (one) => isLeftover(one) && !(one.labels.hostId === hostId && keptAtOf(one) !== undefined),
    );
    for (const { Id } of leftovers) await this.#removeContainer(Id);
    const staying = (await listContainers(this.#engine, ofHost(hostId))).map(({ labels }) => nameOf(labels));
    await this.#directories.sweep(new Set([...staying, ...this.#used.values()]));
    return leftovers.length;
  }

  async listKept(): Promise<KeptContainer[]> {
    const kept = await this.#readKept();
    const beyond = beyondBounds(kept, this.#options.keep ?? { containers: 0, ageMs: 0 }, Date.now());
    for (const { containerId } of beyond) await this.#removeContainer(containerId);
    return kept.filter((one) => !beyond.includes(one));
  }

  async removeKept({ tenant, session }: SessionRef): Promise<void> {
    for (const kept of await this.#readKept())
      if (kept.session.tenant === tenant && kept.session.session === session)
        await this.#removeContainer(kept.containerId);
  }

  async #readKept(): Promise<KeptContainer[]> {
    const { namespace, hostId } = this.#options;
    return (await listContainers(this.#engine, ofHost(hostId))).flatMap((found) => {
      const keptAt = keptAtOf(found);
      const { session, sandboxId } = found.labels;
      if (keptAt === undefined || session.namespace !== namespace) return [];
      return [{ session, sandbox: sandboxId, containerId: found.Id, keptAt }];
    });
  }

  #removeContainer(id: string): Promise<void> {
    return removeContainer(this.#engine, id, this.#options.engineTimes?.callTimeoutMs);
  }

  async close(): Promise<void> {
    await this.images.close();
    await this.#disks.close();
    await this.#deaths.close();
    await this.#engine.close();
  }

  #takeUid(sandboxId: string): number | undefined {
    if (this.#uids === undefined) return undefined;
    const uid = this.#uids.take(sandboxId);
    if (uid !== undefined) return uid;
    throw withoutUid();
  }

  /** Writes the file of users for a session with its own uid, and returns the text. */
  async #writePasswd(image: string, labels: SandboxLabels, directory: string): Promise<string | undefined> {
    if (labels.uid === undefined) return undefined;
    const text = await this.#passwd.write(image, labels.uid, toReader(labels));
    await writeFile(join(directory, PASSWD_FILE), text, { mode: 0o444 });
    return text;
  }

  async #createContainer(made: {
    plan: DockerPlan;
    /** Digest of the image. */
    image: string;
    workspaceIdentity: string | undefined;
    shell: string[];
    labels: SandboxLabels;
    directory: string;
    passwd: string | undefined;
    env: string[] | undefined;
    volumes: string[];
  }): Promise<string> {
    const { plan, labels, directory, passwd, ...rest } = made;
    const request = toContainerOptions({
      ...rest,
      plan,
      transport: labels.transport,
      secrets: deriveKeeperSecrets(this.#options.hostKey, labels.session, labels.sandboxId),
      labels: toLabels(labels),
      name: `shellfleet-${nameOf(labels)}`,
      network: plan.network === 'full' ? await ensureFullNetwork(this.#engine, labels.session.namespace) : 'none',
      keeperSource: isMounted(plan, labels.transport) ? directory : undefined,
      hasPasswd: passwd !== undefined,
    });
    return createContainer(this.#engine, request).catch((error: unknown) => {
      throw isMissingImage(error) ? new MissingImage(plan.image) : error;
    });
  }

  #toSandbox(
    containerId: string,
    image: SandboxImage,
    labels: SandboxLabels,
    createdAt: number,
    isRunning = false,
  ): Sandbox {
    const container = this.#engine.docker.getContainer(containerId);
    const directory = this.#directories.at(nameOf(labels));
    const died = withResolvers<SandboxDeath>();
    const watch = () => {
      this.#disks.add(containerId, () => died.resolve({ reason: 'disk', exitCode: null }));
      void this.#deaths.watch(containerId).then((death) => {
        this.#disks.remove(containerId);
        died.resolve(death);
      });
    };
    if (isRunning) watch();
    return {
      id: labels.sandboxId,
      session: labels.session,
      containerId,
      image: { name: image.name, digest: image.digest },
      description: `container ${containerId.slice(0, 12)} of the image ${image.name}`,
      createdAt,
      keeperProtocol: labels.keeperProtocol,
      link: toKeeperLink(container, directory.socketPath, this.#options.hostKey, labels),
      ...(labels.transport === 'socket' ? { egressPath: directory.egressPath } : {}),
      died: died.promise,
      use: async () => ({
        processorMs: await readProcessorMs(containerId),
        diskBytes: this.#disks.sizeOf(containerId),
      }),
      start: async () => {
        watch();
        await this.#engine
          .call((_docker, abortSignal) => container.start({ abortSignal }))
          .catch((error: unknown) => {
            throw toShellfleetError(error, 'to start a container', (answer) => fromStartReply(answer, image.name));
          });
        // The container may have ended before the watch knew of its start.
        void this.#deaths.inspect(containerId).catch(() => undefined);
      },
      remove: async () => {
        // If the engine does not remove the container now, the next sweep does.
        this.#used.delete(labels.sandboxId);
        await this.#removeContainer(containerId);
        this.#uids?.release(labels.sandboxId);
        await directory.remove();
        died.resolve({ reason: 'removed', exitCode: null });
      },
      keep: async () => {
        if (!(await keepContainer(this.#engine, containerId, labels.sandboxId))) return false;
        this.#used.delete(labels.sandboxId);
        this.#uids?.release(labels.sandboxId);
        await this.#directories.empty(nameOf(labels));
        died.resolve({ reason: 'removed', exitCode: null });
        return true;
      },
    };
  }
}

/** Returns the labels of a container that is only created for reading its image. */
function toReader(labels: SandboxLabels): Record<string, string> {
  return toLabels({ ...labels, sandboxId: randomBytes(6).toString('hex') });
}

function nameOf({ session, sandboxId }: SandboxLabels): string {
  return sandboxName(session, sandboxId);
}

function toFoundState(state: string): FoundSandbox['state'] {
  if (state === 'running' || state === 'paused') return 'running';
  return state === 'created' ? 'created' : 'dead';
}
