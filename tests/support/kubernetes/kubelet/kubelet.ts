import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import Docker from 'dockerode';
import type { ApiServer } from '../api-server/server.ts';
import type { KubeObject, StoreEvent } from '../api-server/store.ts';
import { Claims } from './claims.ts';
import { evict, evictOverLimits } from './evictions.ts';
import { copyFiles } from './images.ts';
import { directoryOf, ownLabels, removeCluster, removeLeftovers } from './leftovers.ts';
import { Node, type NodeSettings } from './node.ts';
import { makePodNetwork, type PodNetwork } from './pod-network.ts';
import { disruption, type Pod, podOf, updateStatus, withConditions } from './pod-status.ts';
import { PodWorker } from './pod-worker.ts';
import { Scheduler } from './scheduler.ts';
import { makeVolumes } from './volumes.ts';

export interface KubeletOptions {
  /** The engine's address, in the form of DOCKER_HOST. */
  dockerHost: string;
  nodes: NodeSettings[];
  /** Whether the network of the Pods enforces policies that deny everything. */
  enforced: boolean;
  pullBackoffMs: number;
  /** Time between two looks at the disks of the Pods. */
  housekeepingMs: number;
}

/** Scheduler, kubelets and node controllers of the tests' cluster. The README says what they are not. */
export class Kubelet {
  readonly claims: Claims;
  readonly #server: ApiServer;
  readonly #docker: Docker;
  readonly #options: KubeletOptions;
  readonly #cluster: string;
  readonly #network: PodNetwork;
  readonly #directory: string;
  readonly #scheduler: Scheduler;
  readonly #nodes = new Map<string, Node>();
  readonly #workers = new Map<string, PodWorker>();
  readonly #ending: (() => void)[] = [];
  #isScheduling = false;

  private constructor(server: ApiServer, docker: Docker, { cluster, network, directory, options }: Made) {
    this.#server = server;
    this.#docker = docker;
    this.#options = options;
    this.#cluster = cluster;
    this.#network = network;
    this.#directory = directory;
    this.claims = new Claims(server.store, directory);
    options.nodes.forEach((settings, index) => {
      this.#nodes.set(settings.name, new Node(settings, index, server.store));
    });
    this.#scheduler = new Scheduler(
      server.store,
      () => [...this.#nodes.values()],
      (pod) => this.claims.refusal(pod),
    );
    this.#ending.push(server.store.subscribe((event) => this.#follow(event)));
  }

  static async start(server: ApiServer, options: KubeletOptions): Promise<Kubelet> {
    if (process.getuid?.() !== 0)
      throw new Error('the kubelet of the tests gives volumes to the groups of Pods: run it as root');
    const docker = new Docker({ socketPath: options.dockerHost.replace('unix://', '') });
    await removeLeftovers(docker);
    const cluster = randomBytes(6).toString('hex');
    const directory = directoryOf(cluster);
    await mkdir(directory, { recursive: true });
    const { enforced } = options;
    const network = await makePodNetwork(docker, `sf-kubelet-${cluster}`, { enforced, labels: ownLabels(cluster) });
    const kubelet = new Kubelet(server, docker, { cluster, network, directory, options });
    await kubelet.#watchMemory();
    kubelet.#keepHouse();
    return kubelet;
  }

  node(name: string): Node {
    const node = this.#nodes.get(name);
    if (!node) throw new Error(`the cluster has no node ${name}`);
    return node;
  }

  addNode(settings: NodeSettings): void {
    this.#nodes.set(settings.name, new Node(settings, this.#nodes.size, this.#server.store));
    this.#schedule();
  }

  /** Keeps new Pods from a node, or lets them on it again. */
  cordon(name: string, isCordoned = true): void {
    this.node(name).cordon(isCordoned);
    this.#schedule();
  }

  /** Cordons a node and evicts its Pods through the Eviction API, as `kubectl drain` does. */
  drain(name: string): void {
    this.cordon(name);
    for (const { metadata } of this.#podsOn(name)) this.evict(metadata.namespace, metadata.name);
  }

  /** Evicts a Pod through the Eviction API: it is deleted with its grace. */
  evict(namespace: string, name: string): void {
    this.#disrupt(namespace, name, disruption('EvictionByEvictionAPI', 'Eviction API: evicting'));
    this.#server.deletePod(namespace, name);
  }

  /** Deletes a Pod as the scheduler does for one of a higher priority. */
  preempt(namespace: string, name: string): void {
    const message = 'default-scheduler: preempting to accommodate a higher priority pod';
    this.#disrupt(namespace, name, disruption('PreemptionByScheduler', message));
    this.#server.deletePod(namespace, name);
  }

  /** Lets the kubelet reject the next Pod of a node, as when the scheduler knew too little: nothing of it runs. */
  rejectNext(name: string, reason = 'OutOfcpu'): void {
    this.node(name).rejectsNextFor = reason;
  }

  /** Evicts a Pod as the kubelet does when its node has no disk left. */
  evictForDisk(namespace: string, name: string): void {
    const words = 'The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 512Mi. ';
    this.#workerOf(namespace, name, (worker) => evict(worker, words));
  }

  /**
   * Loses a node: its kubelet reports nothing any more. Its containers are killed, as those of a machine without power,
   * or live on, as those of a machine that the control plane does not reach. After the time of their tolerations the
   * Pods are deleted, and stay terminating until the node is removed. `evictAfterMs` shortens that time.
   */
  lose(name: string, { containers = 'killed', evictAfterMs }: LossOptions = {}): void {
    const pods = this.#podsOn(name);
    this.node(name).markLost();
    for (const pod of pods) {
      const worker = this.#workers.get(pod.metadata.uid);
      if (containers === 'killed') worker?.vanish();
      else worker?.silence();
      updateStatus(this.#server.store, pod, (status) => ({
        ...status,
        conditions: withConditions(status.conditions, [{ type: 'Ready', status: 'False', reason: 'NodeNotReady' }]),
      }));
      const toleration = pod.spec.tolerations?.find(({ key }) => key === 'node.kubernetes.io/unreachable');
      const afterMs = evictAfterMs ?? (toleration?.tolerationSeconds ?? 0) * 1_000;
      const timer = setTimeout(() => this.#evictLost(pod), afterMs);
      this.#ending.push(() => clearTimeout(timer));
    }
  }

  /** Removes a node: its Pods are gone from the API at once, and its containers with them. */
  removeNode(name: string): void {
    const pods = this.#podsOn(name);
    this.#nodes.delete(name);
    this.#server.store.remove('nodes', undefined, name);
    for (const { metadata } of pods) {
      this.#disrupt(metadata.namespace, metadata.name, disruption('DeletionByPodGC', 'PodGC: node no longer exists'));
      this.#server.store.remove('pods', metadata.namespace, metadata.name);
    }
  }

  /** Returns what the container of a Pod has printed. */
  async logs(namespace: string, name: string): Promise<string> {
    const worker = this.#workers.get(podOf(this.#server.store, namespace, name)?.metadata.uid ?? '');
    return (await worker?.runs.at(-1)?.logs()) ?? '';
  }

  /** Returns the id of the engine's container in which a Pod runs now. */
  containerOf(namespace: string, name: string): string | undefined {
    return this.#workers.get(podOf(this.#server.store, namespace, name)?.metadata.uid ?? '')?.current?.id;
  }

  async close(): Promise<void> {
    for (const end of this.#ending) end();
    for (const worker of this.#workers.values()) worker.vanish();
    await Promise.all([...this.#workers.values()].map(({ done }) => done));
    await removeCluster(this.#docker, this.#cluster);
    await rm(this.#directory, { recursive: true, force: true });
  }

  #podsOn(name: string): Pod[] {
    return (this.#server.store.list('pods') as Pod[]).filter(({ spec }) => spec.nodeName === name);
  }

  #disrupt(namespace: string, name: string, condition: ReturnType<typeof disruption>): void {
    const pod = podOf(this.#server.store, namespace, name);
    if (!pod) return;
    updateStatus(this.#server.store, pod, (status) => ({
      ...status,
      conditions: withConditions(status.conditions, [condition]),
    }));
  }

  #evictLost({ metadata }: Pod): void {
    if (podOf(this.#server.store, metadata.namespace, metadata.name)?.metadata.uid !== metadata.uid) return;
    const message = 'Taint manager: deleting due to NoExecute taint';
    this.#disrupt(metadata.namespace, metadata.name, disruption('DeletionByTaintManager', message));
    this.#server.deletePod(metadata.namespace, metadata.name);
  }

  #workerOf(namespace: string, name: string, act: (worker: PodWorker) => void): void {
    const worker = this.#workers.get(podOf(this.#server.store, namespace, name)?.metadata.uid ?? '');
    if (!worker) throw new Error(`no kubelet runs the Pod ${name}`);
    act(worker);
  }

  #follow({ type, resource, object }: StoreEvent): void {
    if (resource === 'persistentvolumeclaims') this.#schedule();
    if (resource !== 'pods') return;
    const pod = object as Pod;
    const worker = this.#workers.get(pod.metadata.uid);
    if (type === 'DELETED') void this.#forget(pod);
    else if (worker && pod.metadata.deletionTimestamp !== undefined)
      worker.end({ graceSeconds: pod.metadata.deletionGracePeriodSeconds ?? 0 });
    else if (!worker && pod.spec.nodeName !== undefined) this.#run(pod);
    this.#schedule();
  }

  /** Schedules after the present changes, once for all of them. */
  #schedule(): void {
    if (this.#isScheduling) return;
    this.#isScheduling = true;
    setImmediate(() => {
      this.#isScheduling = false;
      this.#scheduler.run();
    });
  }

  #run(pod: Pod): void {
    const node = this.#nodes.get(pod.spec.nodeName ?? '');
    if (!node || node.isLost || pod.status.phase !== 'Pending') return;
    const { namespace, name, deletionTimestamp } = pod.metadata;
    if (deletionTimestamp !== undefined) {
      this.#server.store.remove('pods', namespace, name);
      return;
    }
    if (node.rejectsNextFor !== undefined) {
      this.#reject(pod, node);
      return;
    }
    const { hostname, port } = new URL(this.#server.url);
    const worker = new PodWorker(pod, {
      docker: this.#docker,
      store: this.#server.store,
      network: this.#network,
      node,
      labels: ownLabels(this.#cluster),
      // A kubelet adds these whatever enableServiceLinks says.
      env: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port },
      makeVolumes: async (made) =>
        makeVolumes(made, join(this.#directory, made.metadata.uid), {
          claims: await this.claims.bind(made),
          nameservers: [this.#network.gateway],
          noexec: node.settings.noexecVolumes ?? [],
          copyImage: (image, path) => copyFiles(this.#docker, image, path, ownLabels(this.#cluster)),
        }),
      pullBackoffMs: this.#options.pullBackoffMs,
    });
    this.#workers.set(pod.metadata.uid, worker);
    void worker.done.then(() => this.#release(worker));
  }

  #reject(pod: Pod, node: Node): void {
    const reason = node.rejectsNextFor ?? '';
    node.rejectsNextFor = undefined;
    const resource = reason.replace(/^OutOf/, '');
    const message = `Pod was rejected: Node didn't have enough resource: ${resource}, requested: 1, used: 0, capacity: 0`;
    updateStatus(this.#server.store, pod, (status) => ({ ...status, phase: 'Failed', reason, message }));
  }

  /** Takes a terminating Pod out of the API, as its kubelet does when the last container has ended. */
  #release({ pod }: PodWorker): void {
    const { namespace, name, uid } = pod.metadata;
    const current = podOf(this.#server.store, namespace, name);
    if (current?.metadata.uid !== uid || current.metadata.deletionTimestamp === undefined) return;
    if (this.#nodes.get(pod.spec.nodeName ?? '')?.isLost) return;
    this.#server.store.remove('pods', namespace, name);
  }

  async #forget({ metadata }: KubeObject): Promise<void> {
    const worker = this.#workers.get(metadata.uid);
    if (!worker) return;
    worker.end({ graceSeconds: 0 });
    await worker.done;
    await Promise.all(worker.runs.map((run) => run.remove()));
    this.#workers.delete(metadata.uid);
  }

  /** Kills the whole container in which the kernel has killed a process for want of memory, as cgroup v2 does. */
  async #watchMemory(): Promise<void> {
    const label = Object.entries(ownLabels(this.#cluster)).map(([key, value]) => `${key}=${value}`);
    const events = (await this.#docker.getEvents({ filters: { event: ['oom'], label } })) as unknown as Readable;
    this.#ending.push(() => events.destroy());
    events.on('error', () => {});
    events.on('data', (line: Buffer) => {
      for (const text of line
        .toString()
        .split('\n')
        .filter((one) => one !== '')) {
        const { id } = JSON.parse(text) as { id: string };
        const worker = [...this.#workers.values()].find(({ current }) => current?.id === id);
        void worker?.current?.killOutOfMemory();
      }
    });
  }

  #keepHouse(): void {
    let isBusy = false;
    const timer = setInterval(() => {
      if (isBusy) return;
      isBusy = true;
      void evictOverLimits([...this.#workers.values()]).finally(() => {
        isBusy = false;
      });
    }, this.#options.housekeepingMs);
    this.#ending.push(() => clearInterval(timer));
  }
}

interface Made {
  cluster: string;
  network: PodNetwork;
  directory: string;
  options: KubeletOptions;
}

export interface LossOptions {
  containers?: 'killed' | 'running';
  evictAfterMs?: number;
}
