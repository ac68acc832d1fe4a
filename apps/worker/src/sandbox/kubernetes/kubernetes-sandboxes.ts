import { randomBytes } from 'node:crypto';
import {
  type KubernetesAllowances,
  type KubernetesPlan,
  planKubernetes,
  podSelector,
  toClaim,
  toPod,
} from '@shellfleet/policy';
import { parseKeyspace, type ResolvedSessionSpec, ShellfleetError } from '@shellfleet/protocol';
import { z } from 'zod';
import type { Logger } from '../../log/logger.ts';
import type {
  CreateOptions,
  FoundSandbox,
  OwnerOf,
  Sandbox,
  Sandboxes,
  SessionRef,
  SpareKey,
  SpareSandbox,
  SpareSandboxes,
} from '../sandbox.ts';
import { type ApiBounds, ApiClient, type ApiResource } from './api/api-client.ts';
import { isNoObject } from './api/api-errors.ts';
import type { ApiSettings } from './api/credentials.ts';
import { assignPod } from './assign-pod.ts';
import { describeUnreachable, toClusterError } from './cluster-errors.ts';
import { type FleetOwner, findFleetOwner } from './fleet-lease.ts';
import {
  beginOf,
  creatorOf,
  isOfSession,
  keeperProtocolOf,
  PodIdentity,
  type PodKeys,
  sessionOf,
  toPodName,
  toPoolKey,
} from './pod-names.ts';
import { PodSandbox } from './pod-sandbox.ts';
import { type Pod, podSchema } from './pod-schema.ts';
import { readPodState } from './pod-state.ts';
import { PODS, Pods } from './pods.ts';
import { type PodProof, provePod, toPlace } from './prove-pod.ts';
import { proxyUrl } from './proxy-url.ts';
import { CLAIMS } from './start-pod.ts';

/** Token of every keeper that listens. */
const NO_TOKEN = '0'.repeat(64);
/** Age from which a Pod is swept that Redis does not know. Its session may have been opened a moment ago. */
const SWEEP_FROM_MS = 60_000;
/** Age at which the kubelet ends a Pod of a pool: the greatest age of any session, and as long for its wait. */
const POOL_DEADLINE_MS = 60 * 86_400_000;
/** Time for a Pod of a pool to run. A cluster may add a node for it. */
const POOL_START_MS = 300_000;

export interface KubernetesSandboxesOptions {
  /** Keyspace of the fleet. */
  namespace: string;
  hostId: string;
  api: ApiSettings;
  allowances: KubernetesAllowances;
  /** The first one makes new Pods, and the others reach older ones. */
  sealKeys: readonly string[];
  /** `host:port` of what no Pod may reach besides the API server and other Pods. */
  probes?: readonly string[];
  logger?: Logger;
  apiTimes?: ApiBounds;
  /** Factor of the times between attempts to create a Pod. Default: 1. */
  slowness?: number;
}

/** Sessions of a fleet as Pods of one namespace, which any of its workers reaches. */
export class KubernetesSandboxes implements Sandboxes {
  readonly #options: KubernetesSandboxesOptions;
  readonly #client: ApiClient;
  readonly #identity: PodIdentity;
  readonly #fleetId: string;
  readonly spares: SpareSandboxes = {
    keyOf: async (spec) => toSpareKey(planKubernetes(spec, this.#options.allowances)),
    create: (spec) => this.#createSpare(spec),
  };
  /** Names of the Pods that this process creates or uses. */
  readonly #used = new Set<string>();
  /** Names of the Pods that the last sweep found without an owner, and since when, by `performance.now()`. */
  #strayingSince: ReadonlyMap<string, number> = new Map();
  #pods: Pods | undefined;
  #owner: FleetOwner | undefined;

  constructor(options: KubernetesSandboxesOptions) {
    const { namespace } = options.allowances.cluster;
    this.#options = options;
    this.#client = new ApiClient(options.api, namespace, options.apiTimes);
    this.#fleetId = parseKeyspace(options.namespace).fleetId;
    this.#identity = new PodIdentity({ ...options, fleetId: this.#fleetId, namespace });
  }

  /** Begins to follow the Pods of the fleet, at the first call. */
  async check(): Promise<void> {
    try {
      this.#owner = await this.#findOwner();
      this.#pods ??= await Pods.open(this.#client, this.#selector(), this.#options.logger);
    } catch (error) {
      throw toClusterError(error, 'to list the Pods of the fleet');
    }
  }

  async create(session: SessionRef, spec: ResolvedSessionSpec, { beside }: CreateOptions = {}): Promise<Sandbox> {
    const plan = planKubernetes(spec, this.#options.allowances);
    if (beside !== undefined) throw withoutSecondPod();
    const id = randomBytes(6).toString('hex');
    const { keys, names } = this.#identity.name(id, { session }, await this.#knownOwner());
    const { keeperProtocol } = names;
    const pod = this.#toPodSandbox({ id, keys, createdAt: Date.now(), keeperProtocol }, { plan, session });
    return Object.assign(pod, { session });
  }

  /** Creates a Pod that waits for its session. */
  async #createSpare(spec: ResolvedSessionSpec): Promise<SpareSandbox> {
    const plan = { ...planKubernetes(spec, this.#options.allowances), deadlineMs: POOL_DEADLINE_MS };
    const found = toSpareKey(plan);
    if (!('key' in found)) throw new Error(`A Pod without a session cannot have its ${found.needsOwn}.`);
    const { key } = found;
    const id = randomBytes(6).toString('hex');
    const { keys, names } = this.#identity.name(id, { pool: key }, await this.#knownOwner());
    const of = { id, keys, createdAt: Date.now(), keeperProtocol: names.keeperProtocol };
    const assign = async (session: SessionRef): Promise<Sandbox> => {
      const createdAt = Date.now();
      await assignPod({ client: this.#client, pods: this.#openPods(), name: names.name }, session, createdAt);
      const assigned = this.#toPodSandbox({ ...of, createdAt });
      assigned.follow();
      return Object.assign(assigned, { session });
    };
    return Object.assign(this.#toPodSandbox(of, { plan, pool: key }), { key, assign });
  }

  /** Returns nothing: Pods belong to no worker, so `find` looks them up by session. */
  async list(): Promise<FoundSandbox[]> {
    return [];
  }

  /** Finds the Pod of a ready shell. Throws while it cannot be known whether the Pod is there, and runs. */
  async find(session: SessionRef, sandboxId: string): Promise<FoundSandbox | undefined> {
    const name = toPodName(sandboxId);
    const shown = this.#openPods().get(name);
    const pod = shown !== undefined && isOfSession(shown, session) && hasRun(shown) ? shown : await this.#ask(name);
    if (pod === undefined || !isOfSession(pod, session)) return undefined;
    const { type } = readPodState(pod);
    const keys = this.#identity.keysOf(pod);
    // A Pod that has ended needs no key. The sweep deletes it.
    if (keys === undefined && type === 'dead') return undefined;
    if (keys === undefined) throw withoutKey(name);
    const of = { id: sandboxId, keys, createdAt: beginOf(pod), keeperProtocol: keeperProtocolOf(pod) };
    const sandbox = this.#toPodSandbox(of);
    if (type === 'running') sandbox.follow();
    return {
      sandbox: Object.assign(sandbox, { session }),
      state: type === 'running' ? 'running' : type === 'pending' ? 'created' : 'dead',
    };
  }

  async pull(): Promise<void> {
    // The kubelets pull.
  }

  problem(): string | undefined {
    const problem = this.#pods?.problem;
    return problem === undefined ? undefined : describeUnreachable(problem);
  }

  async sweep(isGone: (hostId: string) => Promise<boolean>, ownerOf: OwnerOf, goneMs: number): Promise<number> {
    this.#owner = await this.#findOwner();
    const before = this.#strayingSince;
    const strayingSince = new Map<string, number>();
    this.#strayingSince = strayingSince;
    const hasStrayed = (name: string) => {
      const since = before.get(name) ?? performance.now();
      strayingSince.set(name, since);
      return performance.now() - since >= goneMs;
    };
    const checks = { isGone, ownerOf, hasStrayed };
    const candidates = this.#openPods()
      .values()
      .filter((pod) => this.#mayBeLeft(pod));
    const left = new Set<string>();
    for (const pod of candidates) if (await this.#isLeft(pod, checks)) left.add(pod.metadata.name);
    // Before the Pods, with which their claims stay until the Pods are gone.
    for (const name of await this.#listClaims()) {
      const isUsed = this.#used.has(name) || this.#openPods().get(name) !== undefined;
      if (isUsed && !left.has(name)) continue;
      left.add(name);
      await this.#delete(CLAIMS, name);
    }
    for (const name of left) await this.#delete(PODS, name);
    return left.size;
  }

  async close(): Promise<void> {
    await this.#pods?.close();
    this.#client.close();
  }

  /** Returns the sandbox of a Pod: of one that is to be created if `made` is given, else of one that is there. */
  #toPodSandbox(
    of: { id: string; keys: PodKeys; createdAt: number; keeperProtocol: number },
    made?: MadePod,
  ): PodSandbox {
    const name = toPodName(of.id);
    const { port, workspace } = this.#options.allowances.cluster;
    const sandbox = new PodSandbox({
      ...{ id: of.id, name, createdAt: of.createdAt, keeperProtocol: of.keeperProtocol, port },
      link: { ...of.keys, token: NO_TOKEN },
      start: {
        ...{ client: this.#client, pods: this.#openPods(), slowness: this.#options.slowness ?? 1 },
        manifests: async () => this.#manifests(of.id, made),
      },
      startWithinMs: made?.pool === undefined ? undefined : POOL_START_MS,
      hasClaim: workspace.type === 'persistentVolumeClaim',
      ...(made && { prove: (examine) => provePod(this.#proofOf(name, made.plan), examine) }),
    });
    this.#used.add(name);
    void sandbox.died.then(() => this.#used.delete(name));
    return sandbox;
  }

  #proofOf(name: string, plan: KubernetesPlan): PodProof {
    const { api, probes = [] } = this.#options;
    const states = this.#openPods()
      .values()
      .filter(({ metadata }) => metadata.name !== name)
      .map(readPodState);
    const other = states.find((state) => state.type === 'running');
    const neighbour = other && toPlace(other.address, plan.cluster.port);
    return { name, plan, server: api.server, probes, neighbour };
  }

  /** Returns the Pod with the owner as of now: one that was replaced would have the cluster delete the Pod at once. */
  async #manifests(id: string, made: MadePod | undefined) {
    if (made === undefined) throw new Error('a Pod that was found is not created again');
    const { plan, session } = made;
    const { names } = this.#identity.name(id, made, await this.#knownOwner());
    const [sealKey = ''] = this.#options.sealKeys;
    const proxy = session && (await proxyUrl(session, plan, sealKey));
    const pod = toPod(plan, { ...names, proxy });
    const annotations = { ...pod.metadata.annotations, ...this.#identity.annotationsOf(session) };
    return { pod: { ...pod, metadata: { ...pod.metadata, annotations } }, claim: toClaim(plan, names) };
  }

  /** Asks the server for a Pod that the watch has not shown as it should be. Throws when the watch is late. */
  async #ask(name: string): Promise<Pod | undefined> {
    let pod: Pod;
    try {
      pod = await this.#client.get(PODS, name, podSchema);
    } catch (error) {
      if (isNoObject(error)) return undefined;
      throw toClusterError(error, 'to read a Pod');
    }
    if (this.#openPods().get(name)?.metadata.resourceVersion === pod.metadata.resourceVersion) return pod;
    this.#openPods().refresh();
    throw new ShellfleetError('SANDBOX_UNAVAILABLE', `The watch has not shown the Pod ${name} yet.`);
  }

  #mayBeLeft({ metadata }: Pod): boolean {
    return isOld(metadata) && metadata.deletionTimestamp === undefined && !this.#used.has(metadata.name);
  }

  /** Tells whether no session has the Pod, or will have it. */
  async #isLeft(pod: Pod, { isGone, ownerOf, hasStrayed }: SweepChecks): Promise<boolean> {
    const { name } = pod.metadata;
    const session = sessionOf(pod, this.#options.namespace);
    // Only the process that created a Pod for a pool gives it to a session.
    if (session === undefined) return creatorOf(pod) === this.#options.hostId || isGone(creatorOf(pod));
    const owner = await ownerOf(session);
    if (owner === 'closed') return true;
    if (owner !== undefined) {
      // Another host may open the session at present. It removes what it does not use.
      if (owner.host !== '' && owner.host !== this.#options.hostId) return false;
      if (toPodName(owner.sandboxId) === name) return false;
    }
    // Redis may have lost its newest data, or all. The worker that uses the Pod then writes that again.
    return hasStrayed(name);
  }

  /** Returns the names of the fleet's claims that are old enough for a sweep. */
  async #listClaims(): Promise<string[]> {
    if (this.#options.allowances.cluster.workspace.type !== 'persistentVolumeClaim') return [];
    const { items } = await this.#client.list(CLAIMS, this.#selector(), claimSchema);
    return items.filter(({ metadata }) => isOld(metadata)).map(({ metadata }) => metadata.name);
  }

  async #delete(resource: ApiResource, name: string): Promise<void> {
    await this.#client.delete(resource, name).catch((error: unknown) => {
      if (!isNoObject(error)) throw error;
    });
  }

  #findOwner(): Promise<FleetOwner> {
    return findFleetOwner(this.#client, this.#options.allowances.cluster.lease, this.#fleetId);
  }

  async #knownOwner(): Promise<FleetOwner> {
    this.#owner ??= await this.#findOwner();
    return this.#owner;
  }

  #selector(): string {
    return podSelector({ fleet: this.#fleetId });
  }

  #openPods(): Pods {
    if (this.#pods === undefined) throw new Error('the Pods of the fleet are followed from check() on');
    return this.#pods;
  }
}

interface SweepChecks {
  isGone(hostId: string): Promise<boolean>;
  ownerOf: OwnerOf;
  /** Tells whether the sweeps have found a Pod without an owner for long enough. */
  hasStrayed(name: string): boolean;
}

/** Tells whether a Pod is shown as one whose shell has begun. */
function hasRun(pod: Pod): boolean {
  const { type } = readPodState(pod);
  return type === 'running' || type === 'dead';
}

/** What a Pod that is to be created is made of. */
interface MadePod {
  plan: KubernetesPlan;
  session?: SessionRef;
  /** Key of the pool for which it is made. */
  pool?: string;
}

/** Returns the key of the Pods that wait for such a session. A token for the proxy names its session. */
function toSpareKey(plan: KubernetesPlan): SpareKey {
  return plan.network === 'limited' ? { needsOwn: 'network' } : { key: toPoolKey(plan) };
}

const isOld = ({ creationTimestamp }: { creationTimestamp: string }) =>
  Date.now() - Date.parse(creationTimestamp) > SWEEP_FROM_MS;

const claimSchema = z.object({ metadata: z.object({ name: z.string(), creationTimestamp: z.string() }) });

function withoutSecondPod(): ShellfleetError {
  const message = 'commands leave no sandbox under the policy kubernetes';
  return new ShellfleetError('SANDBOX_UNAVAILABLE', `The host cannot create a second Pod of a session: ${message}.`, {
    issues: [{ path: 'policy', message }],
  });
}

const withoutKey = (name: string) =>
  new ShellfleetError('SEAL_KEY_UNKNOWN', `This worker has not the seal key that made the Pod ${name}.`);
