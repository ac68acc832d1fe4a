import type { Examination } from '@shellfleet/keeper';
import type { KeeperLink, SandboxDeath, UnassignedSandbox } from '../sandbox.ts';
import { isNoObject } from './api/api-errors.ts';
import type { Pod } from './pod-schema.ts';
import { isOver, readDeath, readPodState } from './pod-state.ts';
import { PODS } from './pods.ts';
import { CLAIMS, type StartedPod, startPod } from './start-pod.ts';

/** Time that the kubelet gives a keeper whose session is over. Nothing that it has is still wanted. */
const REMOVE_GRACE_SECONDS = 2;
/** Time after the grace of a deletion from which a Pod that is still there counts as lost: its node does not answer. */
const LOST_AFTER_MS = 10_000;
/** Time for the kubelet to tell why it ended a container. */
const REASON_WITHIN_MS = 1_000;

export interface PodSandboxOptions {
  id: string;
  name: string;
  createdAt: number;
  keeperProtocol: number;
  /** Everything of the link but the address. */
  link: Omit<Extract<KeeperLink, { type: 'tcp' }>, 'address' | 'type'>;
  port: number;
  start: Omit<StartedPod, 'name' | 'signal' | 'onWait'>;
  hasClaim: boolean;
  /** Time within which its container has to run. Default: no limit. */
  startWithinMs?: number | undefined;
  /** Proves what is in force in a Pod that this worker creates. */
  prove?: NonNullable<UnassignedSandbox['prove']>;
}

/** A Pod of a session or of a pool. */
export class PodSandbox implements UnassignedSandbox {
  readonly id: string;
  readonly description: string;
  readonly createdAt: number;
  readonly keeperProtocol: number;
  readonly link: KeeperLink;
  readonly died: Promise<SandboxDeath>;
  readonly #options: PodSandboxOptions;
  readonly #death = Promise.withResolvers<SandboxDeath>();
  readonly #removal = new AbortController();
  /** The address of the Pod, once it runs. */
  readonly #address = Promise.withResolvers<string>();
  #started: Promise<void> | undefined;
  #waitsFor: string | undefined;
  #node: string | undefined;
  #ending: SandboxDeath | undefined;
  #isFollowed = false;

  constructor(options: PodSandboxOptions) {
    this.#options = options;
    this.id = options.id;
    this.description = `Pod ${options.name}`;
    this.createdAt = options.createdAt;
    this.keeperProtocol = options.keeperProtocol;
    this.died = this.#death.promise;
    const address = async () => ({ host: await this.#address.promise, port: options.port });
    this.link = { type: 'tcp', ...options.link, address };
  }

  /** Name of the node that runs the Pod. Undefined until the scheduler has chosen one. */
  get node(): string | undefined {
    return this.#node;
  }

  get ending(): SandboxDeath | undefined {
    return this.#ending;
  }

  waitsFor(): string | undefined {
    return this.#waitsFor;
  }

  async start(): Promise<void> {
    const { signal } = this.#removal;
    const onWait = (words: string | undefined) => {
      this.#waitsFor = words;
    };
    const { name, startWithinMs } = this.#options;
    const timer =
      startWithinMs === undefined ? undefined : setTimeout(() => this.#giveUp(startWithinMs), startWithinMs);
    this.#started = startPod({ ...this.#options.start, name, signal, onWait });
    await this.#started.finally(() => {
      clearTimeout(timer);
      onWait(undefined);
    });
    this.follow();
  }

  async prove(examine: (probes: readonly string[]) => Promise<Examination>): Promise<void> {
    await this.#options.prove?.(examine);
  }

  /** Follows a Pod that runs, until it ends. */
  follow(): void {
    if (this.#isFollowed) return;
    this.#isFollowed = true;
    const { name, start } = this.#options;
    let last: Pod | undefined;
    let timer: NodeJS.Timeout | undefined;
    let timerEndsAt = Number.POSITIVE_INFINITY;
    const dieWithin = (ms: number) => {
      if (performance.now() + ms >= timerEndsAt) return;
      clearTimeout(timer);
      timerEndsAt = performance.now() + ms;
      timer = setTimeout(() => last && this.#death.resolve(readDeath(last)), ms).unref();
    };
    const unfollow = start.pods.follow(name, (pod, isGone) => {
      last = pod;
      this.#node = pod.spec.nodeName;
      const state = readPodState(pod);
      if (state.type === 'running') this.#address.resolve(state.address);
      if (isGone) this.#death.resolve(deathOfGone(pod));
      else if (isOver(pod)) this.#death.resolve(readDeath(pod));
      else if (state.type === 'dead') dieWithin(REASON_WITHIN_MS);
      const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
      if (deletionTimestamp === undefined) return;
      this.#ending ??= readDeath(pod);
      dieWithin(deletionGracePeriodSeconds * 1_000 + LOST_AFTER_MS);
    });
    void this.died.then(() => {
      clearTimeout(timer);
      unfollow();
    });
    // The Pod may have ended since it was seen to run.
    if (start.pods.get(name) === undefined) this.#death.resolve({ reason: 'removed', exitCode: null });
  }

  #giveUp(withinMs: number): void {
    const words = this.#waitsFor === undefined ? '' : `: ${this.#waitsFor}`;
    this.#removal.abort(new Error(`the ${this.description} did not run within ${withinMs / 1_000} s${words}`));
  }

  async remove(): Promise<void> {
    const { name, start, hasClaim } = this.#options;
    this.#removal.abort(new Error(`the ${this.description} was removed`));
    await this.#started?.catch(() => undefined);
    try {
      await ignoreGone(start.client.delete(PODS, name, { gracePeriodSeconds: REMOVE_GRACE_SECONDS }));
      if (hasClaim) await ignoreGone(start.client.delete(CLAIMS, name));
    } finally {
      // If the cluster does not delete the Pod now, the next sweep does.
      this.#death.resolve({ reason: 'removed', exitCode: null });
    }
  }
}

/** Returns how a Pod ended whose deletion was seen. After a break of the watch its last state may be an earlier one. */
function deathOfGone(pod: Pod): SandboxDeath {
  const death = readDeath(pod);
  return death.reason === 'exited' && death.exitCode === null ? { ...death, reason: 'removed' } : death;
}

async function ignoreGone(deletion: Promise<void>): Promise<void> {
  await deletion.catch((error: unknown) => {
    if (!isNoObject(error)) throw error;
  });
}
