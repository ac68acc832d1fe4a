import type { Logger } from '../../log/logger.ts';
import type { ApiClient, ApiResource } from './api/api-client.ts';
import { Informer } from './api/informer.ts';
import { type Pod, podSchema } from './pod-schema.ts';

export const PODS: ApiResource = { group: '/api/v1', plural: 'pods' };

type Listener = (pod: Pod, isGone: boolean) => void;

/** The Pods of the fleet, as one watch reports them. */
export class Pods {
  readonly #listeners = new Map<string, Set<Listener>>();
  #informer: Informer<Pod> | undefined;

  private constructor() {}

  /** Lists the Pods with the labels, and then follows them. Throws when the first list fails. */
  static async open(client: ApiClient, labelSelector: string, logger?: Logger): Promise<Pods> {
    const pods = new Pods();
    pods.#informer = await Informer.open({
      list: (signal) => client.list(PODS, labelSelector, podSchema, signal),
      watch: (version, signal) => client.watch(PODS, labelSelector, version, podSchema, signal),
      onPresent: (pod) => pods.#tell(pod, false),
      onGone: (pod) => pods.#tell(pod, true),
      logger,
    });
    return pods;
  }

  /** Why changes of Pods are not seen at present, as an error's message; undefined while they are. */
  get problem(): string | undefined {
    return this.#informer?.problem;
  }

  get(name: string): Pod | undefined {
    return this.#informer?.get(name);
  }

  values(): Pod[] {
    return this.#informer?.values() ?? [];
  }

  /** Reports the Pod now, if it is there, and at each change. Returns a function that ends that. */
  follow(name: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    const pod = this.get(name);
    if (pod !== undefined) listener(pod, false);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(name);
    };
  }

  /** Lists the Pods again, for a caller who has read one that the watch has not shown. */
  refresh(): void {
    this.#informer?.refresh();
  }

  async close(): Promise<void> {
    await this.#informer?.close();
  }

  #tell(pod: Pod, isGone: boolean): void {
    for (const listener of [...(this.#listeners.get(pod.metadata.name) ?? [])]) listener(pod, isGone);
  }
}
