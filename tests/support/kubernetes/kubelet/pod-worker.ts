import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { Container } from '../api-server/pod-schema.ts';
import { type Store, timestamp } from '../api-server/store.ts';
import { toCreateOptions } from './container-options.ts';
import { ContainerRun } from './container-run.ts';
import { ensureImage, ImageFailure, type PulledImage, type WantedImage } from './images.ts';
import type { Node } from './node.ts';
import type { PodNetwork } from './pod-network.ts';
import {
  type Condition,
  type ContainerState,
  type ContainerStatus,
  derivedConditions,
  type Pod,
  type PodStatus,
  type Terminated,
  updateStatus,
  withConditions,
} from './pod-status.ts';
import type { PodVolumes } from './volumes.ts';

export interface PodWorkerDeps {
  docker: Docker;
  store: Store;
  network: PodNetwork;
  node: Node;
  labels: Record<string, string>;
  /** Variables that the kubelet gives every container. */
  env: Record<string, string>;
  makeVolumes(pod: Pod): Promise<PodVolumes>;
  /** First time between two pulls of an image. It doubles each time, up to five minutes. */
  pullBackoffMs: number;
}

/** Why the kubelet ends a Pod: what it writes into the status, and the time that the containers get. */
export interface Ending {
  reason?: string;
  message?: string;
  /** Condition DisruptionTarget for a Pod that did nothing to be ended. */
  condition?: Condition;
  graceSeconds: number;
}

const MAX_BACKOFF_MS = 300_000;
const NEVER_RAN = '1970-01-01T00:00:00Z';

/** Runs one Pod: its init containers in order, then its container, and writes its status as a kubelet does. */
export class PodWorker {
  readonly pod: Pod;
  /** Resolves when the Pod has ended and its last status is written. */
  readonly done: Promise<void>;
  readonly runs: ContainerRun[] = [];
  readonly #deps: PodWorkerDeps;
  readonly #ip: string;
  readonly #stop = new AbortController();
  #ending: Ending | undefined;
  #current: ContainerRun | undefined;
  #volumes: PodVolumes | undefined;
  #isSilent = false;

  constructor(pod: Pod, deps: PodWorkerDeps) {
    this.pod = pod;
    this.#deps = deps;
    this.#ip = deps.network.nextAddress();
    this.done = this.#run().catch((error: Error) => this.#fail('KubeletError', error.message));
  }

  get volumes(): PodVolumes | undefined {
    return this.#volumes;
  }

  /** The container that runs now. */
  get current(): ContainerRun | undefined {
    return this.#current;
  }

  /** Ends the Pod. A later call can only shorten the grace of the first. */
  end(ending: Ending): void {
    const isFirst = this.#ending === undefined;
    this.#ending ??= ending;
    this.#stop.abort();
    if (isFirst || ending.graceSeconds < this.#ending.graceSeconds) void this.#current?.stop(ending.graceSeconds);
  }

  /** Kills everything, and writes no status any more: the machine is gone. */
  vanish(): void {
    this.#isSilent = true;
    this.#stop.abort();
    void this.#current?.kill();
  }

  /** Writes no status any more, while the containers live on: nobody reaches the kubelet. */
  silence(): void {
    this.#isSilent = true;
  }

  async #run(): Promise<void> {
    const { initContainers = [], containers } = this.pod.spec;
    if (containers.length !== 1 || this.pod.spec.restartPolicy !== 'Never')
      throw new Error('the kubelet of the tests runs Pods of one container with the restartPolicy Never');
    this.#begin();
    if (!(await this.#waitForVolumes())) return this.#finish('Failed');
    this.#volumes = await this.#deps.makeVolumes(this.pod);
    const stopDeadline = this.#watchDeadline();
    try {
      for (const [index, container] of initContainers.entries()) {
        const end = await this.#runContainer(container, 'initContainerStatuses', index);
        if (end === undefined || end.exitCode !== 0) return this.#finish('Failed');
      }
      const [container] = containers;
      const end = container && (await this.#runContainer(container, 'containerStatuses', 0));
      this.#finish(end?.exitCode === 0 && !this.#ending?.reason ? 'Succeeded' : 'Failed');
    } finally {
      stopDeadline();
      await this.#volumes.remove();
    }
  }

  /** Waits for the images of volumes. Resolves to false if the Pod is ended before. */
  async #waitForVolumes(): Promise<boolean> {
    for (const { image } of this.pod.spec.volumes ?? []) {
      if (!image) continue;
      const wanted = { image: image.reference, imagePullPolicy: image.pullPolicy };
      const put = (change: Partial<ContainerStatus>) =>
        this.#write((status) => ({ ...status, containerStatuses: changeAt(status.containerStatuses, 0, change) }));
      if (!(await this.#waitForImage(wanted, put))) return false;
    }
    return true;
  }

  #begin(): void {
    const { initContainers = [], containers } = this.pod.spec;
    const statusOf = (reason: string) => (container: Container) => toStatus(container, { waiting: { reason } });
    const waiting = initContainers.length > 0 ? 'PodInitializing' : 'ContainerCreating';
    this.#write((status) => ({
      ...status,
      phase: 'Pending',
      hostIP: this.#deps.node.ip,
      startTime: timestamp(),
      ...(initContainers.length > 0 && { initContainerStatuses: initContainers.map(statusOf('PodInitializing')) }),
      containerStatuses: containers.map(statusOf(waiting)),
    }));
  }

  /** Ends the Pod when it is older than it may be. Returns a function that stops the clock. */
  #watchDeadline(): () => void {
    const seconds = this.pod.spec.activeDeadlineSeconds;
    if (seconds === undefined) return () => {};
    const message = 'Pod was active on the node longer than the specified deadline';
    const graceSeconds = this.pod.spec.terminationGracePeriodSeconds;
    // A timer of Node has 31 bits of milliseconds.
    const timer = setTimeout(
      () => this.end({ reason: 'DeadlineExceeded', message, graceSeconds }),
      Math.min(seconds * 1_000, 2 ** 31 - 1),
    );
    return () => clearTimeout(timer);
  }

  /** Runs a container to its end. Resolves to how it ended, or to undefined if it never ran. */
  async #runContainer(container: Container, list: StatusList, index: number): Promise<Terminated | undefined> {
    const put = (change: Partial<ContainerStatus>, more: Partial<PodStatus> = {}) =>
      this.#write((status) => ({ ...status, ...more, [list]: changeAt(status[list], index, change) }));
    const image = await this.#waitForImage(container, put, (found) => this.#refuseRoot(container, found));
    if (!image) return undefined;
    const run = await this.#create(container);
    if (this.#stop.signal.aborted) return undefined;
    const refusal = await run.start().catch((error: Error) => error);
    if (refusal) return this.#reportUnstartable(run, refusal, put);
    this.#current = run;
    // The Pod may have been ended between the start of the container and the line above.
    if (this.#stop.signal.aborted) void run.stop(this.#ending?.graceSeconds ?? 0);
    const isInit = list === 'initContainerStatuses';
    put(
      {
        state: { running: { startedAt: timestamp() } },
        containerID: run.containerID,
        imageID: image.id,
        started: true,
        ready: !isInit,
      },
      { podIP: this.#ip, podIPs: [{ ip: this.#ip }], ...(!isInit && { phase: 'Running' as const }) },
    );
    const terminated = await run.ended();
    this.#current = undefined;
    put({ state: { terminated }, started: false, ready: isInit && terminated.exitCode === 0 });
    return terminated;
  }

  async #create(container: Container): Promise<ContainerRun> {
    const { docker, network, node, labels, env } = this.#deps;
    const mounts = (this.#volumes as PodVolumes).mountsOf(container);
    const { podPidsLimit } = node.settings;
    const fromNode = { ...mounts, network: network.name, podIp: this.#ip, labels, podPidsLimit, env };
    const options = toCreateOptions(this.pod, container, fromNode);
    const run = await ContainerRun.create(docker, options, (this.#volumes as PodVolumes).terminationLog(container));
    this.runs.push(run);
    return run;
  }

  /** Tries until the image is there and may be used. Resolves to undefined if the Pod is ended before. */
  async #waitForImage(
    wanted: WantedImage,
    put: (change: Partial<ContainerStatus>) => void,
    refuse: (image: PulledImage) => Error | undefined = () => undefined,
  ): Promise<PulledImage | undefined> {
    let backoffMs = this.#deps.pullBackoffMs;
    while (!this.#stop.signal.aborted) {
      const image = await ensureImage(this.#deps.docker, wanted).catch((error: Error) => error);
      const refused = image instanceof Error ? image : refuse(image);
      if (!refused) return image as PulledImage;
      if (!(refused instanceof ImageFailure)) throw refused;
      const { reason, message } = refused;
      put({ state: { waiting: { reason, message } } });
      await this.#pause(Math.min(backoffMs, 1_000));
      if (reason === 'ErrImagePull') {
        const words = `Back-off pulling image "${wanted.image}": ErrImagePull: ${message}`;
        put({ state: { waiting: { reason: 'ImagePullBackOff', message: words } } });
        await this.#pause(backoffMs);
        backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS);
      }
    }
    return undefined;
  }

  #refuseRoot({ name, securityContext = {} }: Container, { user }: PulledImage): Error | undefined {
    const ofPod = this.pod.spec.securityContext;
    if (!(securityContext.runAsNonRoot ?? ofPod.runAsNonRoot)) return undefined;
    const uid = securityContext.runAsUser ?? ofPod.runAsUser;
    if (uid === undefined ? !/^(?:|0|root)(?::|$)/.test(user) : uid !== 0) return undefined;
    const { metadata } = this.pod;
    const who = `(pod: "${metadata.name}_${metadata.namespace}(${metadata.uid})", container: ${name})`;
    const what = uid === undefined ? 'and image will run as root' : 'and its runAsUser is 0';
    return new ImageFailure('CreateContainerConfigError', `container has runAsNonRoot ${what} ${who}`);
  }

  #reportUnstartable(
    run: ContainerRun,
    { message }: Error,
    put: (change: Partial<ContainerStatus>) => void,
  ): Terminated {
    const words = message.replace(/^\(HTTP code \d+\) [^-]+ - /, '').trim();
    const terminated = {
      exitCode: 128,
      reason: 'StartError',
      message: `failed to create containerd task: ${words}`,
      startedAt: NEVER_RAN,
      finishedAt: timestamp(),
      containerID: run.containerID,
    };
    put({ state: { terminated }, containerID: run.containerID });
    return terminated;
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => {});
  }

  #finish(phase: 'Succeeded' | 'Failed'): void {
    const { reason, message, condition } = this.#ending ?? {};
    this.#write((status) => ({
      ...status,
      phase,
      ...(reason !== undefined && { reason }),
      ...(message !== undefined && { message }),
      conditions: withConditions(status.conditions, condition ? [condition] : []),
    }));
  }

  #fail(reason: string, message: string): void {
    this.end({ graceSeconds: 0 });
    this.#write((status) => ({ ...status, phase: 'Failed', reason, message }));
  }

  #write(change: (status: PodStatus) => PodStatus): void {
    if (this.#isSilent) return;
    updateStatus(this.#deps.store, this.pod, (before) => {
      const status = change(before);
      const derived = derivedConditions(this.pod.spec, status, status.podIP !== undefined);
      return { ...status, conditions: withConditions(status.conditions, derived) };
    });
  }
}

type StatusList = 'initContainerStatuses' | 'containerStatuses';

function toStatus({ name, image = '' }: Container, state: ContainerState): ContainerStatus {
  return { name, state, lastState: {}, ready: false, started: false, restartCount: 0, image, imageID: '' };
}

function changeAt(list: ContainerStatus[] | undefined, index: number, change: Partial<ContainerStatus>) {
  return (list ?? []).map((status, at) => (at === index ? { ...status, ...change } : status));
}
