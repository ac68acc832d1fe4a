import { readFile } from 'node:fs/promises';
import type Docker from 'dockerode';
import { timestamp } from '../api-server/store.ts';
import type { Terminated } from './pod-status.ts';

const KILLED = 137;
/** Length of a last message that a kubelet keeps. */
const MESSAGE_BYTES = 4_096;

/** One container of a Pod, from its creation to its end. */
export class ContainerRun {
  readonly id: string;
  readonly #container: Docker.Container;
  readonly #terminationLog: string;
  #isOutOfMemory = false;
  #layer: Promise<string | undefined> | undefined;

  private constructor(container: Docker.Container, terminationLog: string) {
    this.#container = container;
    this.#terminationLog = terminationLog;
    this.id = container.id;
  }

  static async create(
    docker: Docker,
    options: Docker.ContainerCreateOptions,
    terminationLog: string,
  ): Promise<ContainerRun> {
    return new ContainerRun(await docker.createContainer(options), terminationLog);
  }

  get containerID(): string {
    return `containerd://${this.id}`;
  }

  async start(): Promise<void> {
    await this.#container.start();
  }

  /** Resolves at the end of the container, to how it ended. */
  async ended(): Promise<Terminated> {
    await this.#container.wait();
    const { State } = await this.#container.inspect();
    const message = (await readFile(this.#terminationLog, 'utf8').catch(() => '')).slice(0, MESSAGE_BYTES);
    const isOutOfMemory = this.#isOutOfMemory || State.OOMKilled;
    const exitCode = isOutOfMemory ? KILLED : State.ExitCode;
    return {
      exitCode,
      reason: isOutOfMemory ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error',
      ...(message !== '' && { message }),
      startedAt: timestamp(new Date(State.StartedAt)),
      finishedAt: timestamp(new Date(State.FinishedAt)),
      containerID: this.containerID,
    };
  }

  /** Kills the whole container, since the kernel has killed one process of it for want of memory. */
  async killOutOfMemory(): Promise<void> {
    this.#isOutOfMemory = true;
    await this.kill();
  }

  /** Asks the container to end, and kills it after its grace. */
  async stop(graceSeconds: number): Promise<void> {
    await this.#container.stop({ t: graceSeconds }).catch(ignoreEnded);
  }

  async kill(): Promise<void> {
    await this.#container.kill().catch(ignoreEnded);
  }

  async remove(): Promise<void> {
    await this.#container.remove({ force: true, v: true }).catch(ignoreEnded);
  }

  /** Returns what the container printed, as `kubectl logs` would. */
  async logs(): Promise<string> {
    const raw = await this.#container.logs({ stdout: true, stderr: true });
    return withoutHeaders(raw);
  }

  /** Returns the directory of the files that the container has written outside its volumes, if the engine tells it. */
  writableLayer(): Promise<string | undefined> {
    this.#layer ??= this.#container
      .inspect()
      .then((details) => (details as { GraphDriver?: { Data?: { UpperDir?: string } } }).GraphDriver?.Data?.UpperDir);
    return this.#layer;
  }
}

/** The container may have ended, or be gone, before the engine gets the request. */
function ignoreEnded(error: { statusCode?: number }): void {
  if (![304, 404, 409].includes(error.statusCode ?? 0)) throw error;
}

/** Removes the header of eight bytes that precedes each part of the output of a container without a terminal. */
function withoutHeaders(raw: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= raw.length; ) {
    const length = raw.readUInt32BE(at + 4);
    parts.push(raw.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return Buffer.concat(parts).toString();
}
