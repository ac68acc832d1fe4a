import type { ChildProcess } from 'node:child_process';
import { SHELL_CONTAINER } from '@shellfleet/policy';
import { type Store, type StoreEvent, timestamp } from '../api-server/store.ts';
import { type Pod, type PodStatus, podOf, updateStatus } from '../kubelet/pod-status.ts';
import type { PodNamespaces } from './pod-namespaces.ts';

const KILLED = 137;

/**
 * A kubelet that runs the keeper of each Pod as a process of this machine, at an address of its own. Images, volumes
 * and limits of the Pod are not there, and a Pod that is deleted gets no grace.
 */
export class ProcessKubelet {
  readonly #store: Store;
  readonly #namespaces: PodNamespaces;
  readonly #node: string;
  readonly #free: string[];
  readonly #keepers = new Map<string, ChildProcess>();

  constructor(store: Store, namespaces: PodNamespaces, node: string) {
    this.#store = store;
    this.#namespaces = namespaces;
    this.#node = node;
    this.#free = [...namespaces.addresses];
    store.subscribe((event) => this.#follow(event));
  }

  /** Number of Pods whose keepers run. */
  get count(): number {
    return this.#keepers.size;
  }

  /** Kills the keeper of a Pod, as a kernel without memory does. Resolves when the status says so. */
  async kill({ metadata }: Pod): Promise<void> {
    const keeper = this.#keepers.get(metadata.uid);
    if (keeper !== undefined) await this.#namespaces.kill(keeper);
  }

  #follow({ type, resource, object }: StoreEvent): void {
    if (resource !== 'pods') return;
    const pod = object as Pod;
    if (type === 'ADDED') this.#run(pod);
    else if (type === 'DELETED' || pod.metadata.deletionTimestamp !== undefined) void this.kill(pod);
  }

  #run(pod: Pod): void {
    const address = this.#free.shift();
    const shell = pod.spec.containers.find(({ name }) => name === SHELL_CONTAINER);
    if (address === undefined || shell === undefined) throw new Error(`the Pod ${pod.metadata.name} cannot be run`);
    const { name, namespace, uid } = pod.metadata;
    const [program = '', listen = '', ...rest] = shell.command ?? [];
    const env = Object.fromEntries((shell.env ?? []).map((variable) => [variable.name, variable.value ?? '']));
    const command = [program, listen.replace('tcp:', `tcp:${address}:`), ...rest];
    const keeper = this.#namespaces.start(command, env);
    this.#keepers.set(uid, keeper);
    keeper.once('exit', () => {
      this.#keepers.delete(uid);
      this.#free.push(address);
      this.#end(pod);
    });
    this.#store.update('pods', namespace, name, (current) => ({
      ...current,
      spec: { ...(current.spec as object), nodeName: this.#node },
    }));
    const startedAt = timestamp();
    updateStatus(this.#store, pod, (status) => ({
      ...status,
      ...{ phase: 'Running', podIP: address, podIPs: [{ ip: address }], startTime: startedAt },
      containerStatuses: [toStatus(shell, { running: { startedAt } })],
    }));
  }

  #end(pod: Pod): void {
    const { namespace, name, uid } = pod.metadata;
    const current = podOf(this.#store, namespace, name);
    if (current?.metadata.uid !== uid) return;
    if (current.metadata.deletionTimestamp !== undefined) {
      this.#store.remove('pods', namespace, name);
      return;
    }
    const at = timestamp();
    const terminated = { exitCode: KILLED, reason: 'Error', startedAt: current.status.startTime ?? at, finishedAt: at };
    updateStatus(this.#store, pod, (status) => ({
      ...status,
      phase: 'Failed',
      containerStatuses: (status.containerStatuses ?? []).map((one) => toStatus(one, { terminated })),
    }));
  }
}

type ContainerStatus = NonNullable<PodStatus['containerStatuses']>[number];

function toStatus(
  { name, image = '' }: { name: string; image?: string | undefined },
  state: ContainerStatus['state'],
): ContainerStatus {
  const runs = 'running' in state;
  return { name, image, imageID: image, state, lastState: {}, ready: runs, started: runs, restartCount: 0 };
}
