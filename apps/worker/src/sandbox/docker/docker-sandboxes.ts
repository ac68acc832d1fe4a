import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { abortable } from '@shellfleet/concurrency';
import { type DockerPlan, WORKSPACE_PATH } from '@shellfleet/policy';
import { parseKeyspace, type ResolvedSessionSpec } from '@shellfleet/protocol';
import type { HostMemory } from '../../host/host-memory.ts';
import type { Logger } from '../../log/logger.ts';
import { deriveKeeperSecrets } from '../keeper-secrets.ts';
import { makeWorkspace } from '../make-workspace.ts';
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
  type SessionRef,
  type SpareSandbox,
  type SpareSandboxes,
  type UnassignedSandbox,
} from '../sandbox.ts';
import type { SessionDirectories } from '../session-directory.ts';
import type { Assignment, Assignments } from './assignments.ts';
import type { ContainerDisks } from './container-disks.ts';
import { ContainerFiles, isMounted } from './container-files.ts';
import { PASSWD_FILE, toContainerOptions } from './container-options.ts';
import { ContainerPlanner, type PlannedImage, type PlannerOptions } from './container-planner.ts';
import { readProcessorMs } from './container-processor.ts';
import { createContainer } from './create-container.ts';
import { DeathWatch } from './death-watch.ts';
import { readDiskQuota } from './disk-quota.ts';
import type { DiskBounds } from './disk-watch.ts';
import { fromCreateReply, fromStartReply, isMissingImage, toShellfleetError } from './docker-errors.ts';
import type { Engine, EngineTimes } from './engine.ts';
import { type FoundContainer, findGoneHosts, listContainers, listFleets, removeContainer } from './found-containers.ts';
import type { HostImages, HostImagesOptions } from './host-images.ts';
import { ImageUsers } from './image-users.ts';
import { checkVolumes } from './image-volumes.ts';
import { toKeeperLink } from './keeper-link.ts';
import { beyondBounds, keepContainer, keptAtOf } from './kept-containers.ts';
import { hostFilter, ofFleet, ofHost, ofNamespace, type SandboxLabels, toLabels } from './labels.ts';
import { checkOwnWorkspace, type OwnContainer, readOwnContainer, safeEnv } from './own-container.ts';
import { SessionPasswd } from './session-passwd.ts';
import { SessionUids, type UidRange } from './session-uids.ts';
import { withoutUid } from './unavailable.ts';
import { hasVolumes, openWorkspaceDirectory } from './workspace-directory.ts';

export interface DockerSandboxesOptions extends PlannerOptions {
  /** Secret of this host, from which the tokens of its keepers are derived. */
  hostKey: Buffer;
  /** Parent of the keepers' directories. Its path must be short, because unix sockets are in it. */
  directory: string;
  keeperPath: string;
  socketPath: string;
  /** Range from which each session gets its own uid. Default: all sessions share one uid. */
  uids?: UidRange;
  /** Bounds of what is kept for a post-mortem. Default: nothing is kept. */
  keep?: { containers: number; ageMs: number };
  disk?: DiskBounds;
  /** Tells deaths for the memory of the whole host from others. Default: it does not. */
  hostMemory?: Pick<HostMemory, 'hasRunOut'>;
  /** Record, budget and logins of images. Default: a record beside `directory`, no budget and no logins. */
  images?: HostImagesOptions;
  logger?: Logger;
  engineTimes?: EngineTimes;
}

/** What the sandboxes use, opened. */
interface Parts {
  engine: Engine;
  directories: SessionDirectories;
  assignments: Assignments;
  disks: ContainerDisks;
  images: HostImages;
}

export class DockerSandboxes implements Sandboxes {
  readonly #engine: Engine;
  readonly #directories: SessionDirectories;
  readonly #assignments: Assignments;
  readonly #options: DockerSandboxesOptions;
  readonly images: HostImages;
  readonly spares: SpareSandboxes = {
    keyOf: (spec, image) => this.#planner.planShared(spec, image),
    create: (spec) => this.#createSpare(spec),
  };
  readonly #planner: ContainerPlanner;
  readonly #deaths: DeathWatch;
  readonly #disks: ContainerDisks;
  readonly #files: ContainerFiles;
  readonly #uids: SessionUids | undefined;
  readonly #passwd: SessionPasswd;
  /** Ids of the sandboxes that this process creates or uses. All others are leftovers. */
  readonly #used = new Set<string>();

  constructor({ engine, directories, assignments, disks, images }: Parts, options: DockerSandboxesOptions) {
    this.#engine = engine;
    this.#directories = directories;
    this.#assignments = assignments;
    this.#options = options;
    this.images = images;
    this.#deaths = new DeathWatch(engine, hostFilter(options.namespace, options.hostId), options.hostMemory);
    this.#uids = options.uids && new SessionUids(options.uids);
    this.#passwd = new SessionPasswd(engine);
    const imageUsers = new ImageUsers(this.#passwd, options.allowances.users);
    this.#planner = new ContainerPlanner(engine, imageUsers, options, this.#uids !== undefined);
    this.#disks = disks;
    this.#files = new ContainerFiles(engine, options.transport, () => directories.keeper());
  }

  async check(): Promise<void> {
    await this.#engine
      .call((docker, abortSignal) => docker.listContainers({ limit: 1, abortSignal }))
      .catch((error: unknown) => {
        throw toShellfleetError(error, 'asking whether it is there');
      });
    if ((this.#options.allowances.runtimes ?? []).length > 0) await this.#planner.runtimes.probe();
  }

  async create(session: SessionRef, spec: ResolvedSessionSpec, options: CreateOptions = {}): Promise<Sandbox> {
    const { beside, signal } = options;
    const plan = await this.#planner.plan(spec, beside);
    if (beside !== undefined) return this.#createBeside(session, spec, plan, beside, signal);
    const planned = await this.#planner.withImage(plan, options.image);
    const made = await this.images.using(planned.image.digest, () => this.#create(session, spec, planned, signal));
    return { ...made, session };
  }

  async #createBeside(
    session: SessionRef,
    spec: ResolvedSessionSpec,
    plan: DockerPlan,
    { sandboxId }: Beside,
    signal: AbortSignal | undefined,
  ): Promise<Sandbox> {
    const target = plan.workspace?.target ?? WORKSPACE_PATH;
    const own = await readOwnContainer(this.#engine, containerName(sandboxId), target).catch((error: unknown) => {
      throw toShellfleetError(error, "reading a session's own container");
    });
    const image = await this.#planner.images.find([own.image]);
    const planned = { plan: { ...plan, image: own.image }, image };
    const made = await this.#create(session, spec, planned, signal, { ...own, sandboxId });
    return { ...made, session };
  }

  async #createSpare(spec: ResolvedSessionSpec): Promise<SpareSandbox> {
    const shared = await this.#planner.planShared(spec);
    if (!('key' in shared)) throw new Error(`A sandbox without a session cannot have its ${shared.needsOwn}.`);
    const { key, planned } = shared;
    const made = await this.images.using(planned.image.digest, () => this.#create(undefined, spec, planned));
    const assign = async (session: SessionRef): Promise<Sandbox> => {
      const assignment = toAssignment(session);
      await this.#assignments.write(made.id, assignment);
      return { ...made, session, createdAt: assignment.assignedAt };
    };
    return { ...made, key, assign };
  }

  /** Creates a container. `own` is the session's first container when the new one is the second. */
  async #create(
    session: SessionRef | undefined,
    spec: ResolvedSessionSpec,
    asked: PlannedImage,
    signal?: AbortSignal,
    own?: OwnContainer & { sandboxId: string },
  ): Promise<UnassignedSandbox> {
    const { image } = asked;
    const fresh = this.#planner.newLabels();
    const { sandboxId } = fresh;
    const uid = spec.user === undefined ? (own?.uid ?? this.#takeUid(sandboxId)) : undefined;
    const labels = {
      ...{ ...fresh, image: image.name },
      ...(session === undefined ? {} : { session }),
      ...(uid === undefined ? {} : { uid }),
      ...(own === undefined ? {} : { beside: own.sandboxId }),
    };
    const { plan, volumes, workspace } = await this.#prepare(asked, labels, own === undefined).catch(
      (error: unknown) => {
        this.#uids?.release(sandboxId);
        throw error;
      },
    );
    const isCompared = workspace.identity !== undefined;
    this.#used.add(sandboxId);
    try {
      if (own !== undefined) checkOwnWorkspace(own, plan, workspace);
      if (isCompared && volumes.length > 0) throw hasVolumes(plan.image);
      const directory = await this.#directories.create(sandboxId);
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
        .then(() => this.#files.put(containerId, request))
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
      await this.#directories.at(sandboxId).remove();
      if (isMissingImage(error)) throw new MissingImage(plan.image);
      throw error instanceof MissingImage ? error : toShellfleetError(error, 'to make a container', fromCreateReply);
    }
  }

  /**
   * Opens the workspace directory last. If a session replaces the directory between this and the mount, the start
   * fails.
   */
  async #prepare(planned: PlannedImage, { uid, transport }: SandboxLabels, makesWorkspace: boolean) {
    const { allowances } = this.#options;
    const { plan, volumes } = await this.#planner.complete(planned, uid);
    if (plan.workspace !== undefined && transport === 'socket' && makesWorkspace)
      await makeWorkspace(plan.workspace.path, allowances.workspaces, plan.owner);
    const workspace = await openWorkspaceDirectory(plan.workspace?.path, allowances.workspaces, transport);
    return { plan, volumes, workspace };
  }

  async list(): Promise<FoundSandbox[]> {
    const containers = await listContainers(this.#engine, ofHost(this.#options.hostId));
    // All fleets that this host was ever part of share its directories.
    await this.#directories.sweep(new Set(containers.map(({ labels }) => labels.sandboxId)));
    const own = containers.filter(
      (one) => one.labels.namespace === this.#options.namespace && keptAtOf(one) === undefined,
    );
    return Promise.all(own.map((container) => this.#find(container)));
  }

  async #find({ labels, Id, Image, ImageID, Created, State }: FoundContainer): Promise<FoundSandbox> {
    const { sandboxId, uid, beside } = labels;
    const state = toFoundState(State);
    const image = { name: labels.image ?? Image, digest: ImageID };
    const assignment = labels.session === undefined ? await this.#assignments.read(sandboxId) : undefined;
    const session = labels.session ?? (assignment && this.#toSession(assignment));
    this.#used.add(sandboxId);
    const isRunning = state === 'running' && beside === undefined && session !== undefined;
    const found = this.#toSandbox(Id, image, labels, assignment?.assignedAt ?? Created * 1_000, isRunning);
    if (session === undefined) return { sandbox: found, state: 'spare' };
    if (beside !== undefined) return { sandbox: { ...found, session }, state: 'beside' };
    if (uid !== undefined) this.#uids?.keep(sandboxId, uid);
    return { sandbox: { ...found, session }, state };
  }

  #toSession({ tenant, session }: Assignment): SessionRef {
    return { namespace: this.#options.namespace, tenant, session };
  }

  async pull(image: string, signal?: AbortSignal): Promise<void> {
    await abortable(this.images.pull(image), signal);
  }

  async limits(): Promise<HostLimits> {
    return { diskQuota: await readDiskQuota(this.#engine) };
  }

  missingRuntimes(): string[] {
    return this.#planner.runtimes.lacking(this.#options.allowances.runtimes ?? []);
  }

  async otherFleets(): Promise<string[]> {
    const { namespace } = this.#options;
    const own = parseKeyspace(namespace).fleetId;
    return (await listFleets(this.#engine, ofNamespace(namespace))).filter((fleetId) => fleetId !== own);
  }

  setDiskQuotas(hasQuotas: boolean): void {
    this.#disks.setQuotas(hasQuotas);
  }

  problem(): string | undefined {
    return this.#engine.problem ?? this.#disks.problem;
  }

  async sweep(isGone: (hostId: string) => Promise<boolean>): Promise<number> {
    const { namespace, hostId } = this.#options;
    const containers = await listContainers(this.#engine, ofFleet(namespace));
    const goneHosts = await findGoneHosts(containers, hostId, isGone);
    const isUnused = (one: FoundContainer) => !this.#used.has(one.labels.sandboxId) && keptAtOf(one) === undefined;
    // The kept containers of a host that is gone are removed too.
    const leftovers = containers.filter((one) =>
      one.labels.hostId === hostId ? isUnused(one) : goneHosts.has(one.labels.hostId),
    );
    for (const { Id } of leftovers) await this.#removeContainer(Id);
    const staying = (await listContainers(this.#engine, ofHost(hostId))).map(({ labels }) => labels.sandboxId);
    await this.#directories.sweep(new Set([...staying, ...this.#used]));
    await this.#assignments.sweep(new Set([...staying, ...this.#used]));
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
    const found = await listContainers(this.#engine, ofHost(hostId));
    const kept = found.map(async (container) => {
      const keptAt = keptAtOf(container);
      const { sandboxId } = container.labels;
      if (keptAt === undefined || container.labels.namespace !== namespace) return [];
      const assignment = await this.#assignments.read(sandboxId);
      const session = container.labels.session ?? (assignment && this.#toSession(assignment));
      return session === undefined ? [] : [{ session, sandbox: sandboxId, containerId: container.Id, keptAt }];
    });
    return (await Promise.all(kept)).flat();
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
    const text = await this.#passwd.write(image, labels.uid, this.#planner.readerLabels());
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
      secrets: deriveKeeperSecrets(this.#options.hostKey, labels.namespace, labels.sandboxId),
      labels: toLabels(labels),
      name: containerName(labels.sandboxId),
      network: await this.#planner.networkOf(plan),
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
  ): UnassignedSandbox {
    const container = this.#engine.docker.getContainer(containerId);
    const directory = this.#directories.at(labels.sandboxId);
    const died = Promise.withResolvers<SandboxDeath>();
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
        if (labels.session === undefined) await this.#assignments.remove(labels.sandboxId);
        died.resolve({ reason: 'removed', exitCode: null });
      },
      keep: async () => {
        if (!(await keepContainer(this.#engine, containerId, labels.sandboxId))) return false;
        this.#used.delete(labels.sandboxId);
        this.#uids?.release(labels.sandboxId);
        await this.#directories.empty(labels.sandboxId);
        died.resolve({ reason: 'removed', exitCode: null });
        return true;
      },
    };
  }
}

const containerName = (sandboxId: string) => `shellfleet-${sandboxId}`;

const toAssignment = ({ tenant, session }: SessionRef): Assignment => ({ tenant, session, assignedAt: Date.now() });

function toFoundState(state: string): 'created' | 'running' | 'dead' {
  if (state === 'running' || state === 'paused') return 'running';
  return state === 'created' ? 'created' : 'dead';
}
