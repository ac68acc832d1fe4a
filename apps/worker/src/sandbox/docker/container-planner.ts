import { createHash, randomBytes } from 'node:crypto';
import { KEEPER_PROTOCOL_VERSION } from '@shellfleet/keeper';
import { type DockerAllowances, type DockerPlan, planDocker } from '@shellfleet/policy';
import type { ResolvedSessionSpec } from '@shellfleet/protocol';
import { withRealWorkspace } from '../real-workspace.ts';
import type { Beside, SandboxImage, SandboxTransport, SpareKey } from '../sandbox.ts';
import { isMounted } from './container-files.ts';
import { type ContainerRequest, toContainerOptions } from './container-options.ts';
import { readDiskQuota } from './disk-quota.ts';
import type { Engine } from './engine.ts';
import { type FoundImage, ImageLookup } from './find-image.ts';
import { ensureFullNetwork } from './full-network.ts';
import { withImageDirectory } from './image-directory.ts';
import type { ImageUsers } from './image-users.ts';
import { planVolumes } from './image-volumes.ts';
import { type SandboxLabels, toLabels } from './labels.ts';
import { Runtimes } from './runtimes.ts';
import { withoutSharedDirectory } from './unavailable.ts';

/** Settings that decide what a session gets. */
export interface PlannerOptions {
  /** Keyspace of the fleet. */
  namespace: string;
  hostId: string;
  transport: SandboxTransport;
  allowances: Omit<DockerAllowances, 'bounds' | 'ownUids'> & { bounds: Omit<DockerAllowances['bounds'], 'diskQuota'> };
}

export interface PlannedImage {
  plan: DockerPlan;
  image: FoundImage;
}

type SharedPlan = { key: string; planned: PlannedImage } | Exclude<SpareKey, { key: string }>;

/** Decides what the container of a session is like, from its spec, the operator's settings and the image. */
export class ContainerPlanner {
  readonly #engine: Engine;
  readonly #options: PlannerOptions;
  readonly #ownUids: boolean;
  readonly #imageUsers: ImageUsers;
  readonly runtimes: Runtimes;
  readonly images: ImageLookup;

  constructor(engine: Engine, imageUsers: ImageUsers, options: PlannerOptions, ownUids: boolean) {
    this.#engine = engine;
    this.#imageUsers = imageUsers;
    this.#options = options;
    this.#ownUids = ownUids;
    this.runtimes = new Runtimes(engine);
    this.images = new ImageLookup(engine);
  }

  /** Checks the spec against the operator's settings. Throws SANDBOX_UNAVAILABLE. */
  async plan(spec: ResolvedSessionSpec, beside?: Beside): Promise<DockerPlan> {
    const diskQuota = spec.limits?.diskBytes !== undefined && (await readDiskQuota(this.#engine));
    const { bounds, ...allowed } = this.#options.allowances;
    const allowances = {
      ...{ ...allowed, ownUids: this.#ownUids, bounds: { ...bounds, diskQuota } },
      ...(beside === undefined ? {} : { sandbox: beside.allowances }),
    };
    const plan = planDocker(await withRealWorkspace(spec), allowances);
    await this.runtimes.require(plan.runtime);
    if (plan.network === 'limited' && this.#options.transport === 'attach') throw withoutSharedDirectory();
    return plan;
  }

  /** Finds the image of the plan, or again the `known` one. Throws MissingImage. */
  async withImage(plan: DockerPlan, known?: SandboxImage): Promise<PlannedImage> {
    const otherwise = plan.otherwiseImage === undefined ? [] : [plan.otherwiseImage];
    const image = await this.images.find([plan.image, ...otherwise], known);
    return { plan: { ...plan, image: image.name }, image };
  }

  /** Adds what the image decides: the directory, the user and the mount points in place of its volumes. */
  async complete(
    { plan: planned, image }: PlannedImage,
    uid: number | undefined,
  ): Promise<{ plan: DockerPlan; volumes: string[] }> {
    const inDirectory = withImageDirectory(planned, image);
    const plan =
      uid === undefined
        ? await this.#imageUsers.resolve(inDirectory, image, this.readerLabels())
        : { ...inDirectory, user: `${uid}:${uid}`, owner: { uid, gid: uid } };
    const volumes = planVolumes(plan.image, Object.keys(image.config.Volumes ?? {}), plan.workspace?.target);
    return { plan, volumes };
  }

  /** Returns the network mode of the container: a network id, or `none`. */
  async networkOf(plan: DockerPlan): Promise<string> {
    return plan.network === 'full' ? ensureFullNetwork(this.#engine, this.#options.namespace) : 'none';
  }

  /** Plans a container that any session with such a spec can have. Its key is the digest of all its options. */
  async planShared(spec: ResolvedSessionSpec, known?: SandboxImage): Promise<SharedPlan> {
    if (spec.workspace !== undefined) return { needsOwn: 'workspace' };
    if (spec.user !== undefined || this.#ownUids) return { needsOwn: 'user' };
    const asked = await this.plan(spec);
    // A session with this network has a proxy of its own.
    if (asked.network === 'limited') return { needsOwn: 'network' };
    const planned = await this.withImage(asked, known);
    const { plan, volumes } = await this.complete(planned, undefined);
    const { transport } = this.#options;
    const { image } = planned;
    const request: ContainerRequest = {
      ...{ plan, volumes, transport, image: image.digest, shell: spec.shell ?? [] },
      ...{ name: '', labels: { image: image.name }, secrets: { token: '', syncWord: '' } },
      ...{ network: await this.networkOf(plan), workspaceIdentity: undefined, hasPasswd: false },
      keeperSource: isMounted(plan, transport) ? '' : undefined,
    };
    const key = createHash('sha256')
      .update(JSON.stringify(toContainerOptions(request)))
      .digest('hex');
    return { key, planned };
  }

  /** Returns the labels of a container that is only created for reading its image. */
  readerLabels(): Record<string, string> {
    return toLabels(this.newLabels());
  }

  /** Returns the labels of a new sandbox, with its id. */
  newLabels(): SandboxLabels {
    const { namespace, hostId, transport } = this.#options;
    const sandboxId = randomBytes(6).toString('hex');
    return { namespace, hostId, sandboxId, transport, keeperProtocol: KEEPER_PROTOCOL_VERSION };
  }
}
