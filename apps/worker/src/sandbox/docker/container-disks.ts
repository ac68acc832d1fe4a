import type { Docker } from '@shellfleet/vendor/dockerode';
import { z } from 'zod';
import { readDiskSpace, type Space } from '../../host/free-space.ts';
import type { Logger } from '../../log/logger.ts';
import { type DiskBounds, DiskWatch } from './disk-watch.ts';
import { isConflict, isNotFound } from './docker-errors.ts';
import type { Engine } from './engine.ts';

/** Time limit to count a container's files. The circuit breaker ignores it: many files are no fault of the engine. */
const MEASURE_TIMEOUT_MS = 60_000;

const sizeSchema = z.object({ SizeRw: z.number() });

export class ContainerDisks {
  readonly #engine: Engine;
  readonly #watch: DiskWatch;
  /** Watched containers by id, each with the callback that is called before its end. */
  readonly #running = new Map<string, () => void>();
  #engineDirectory: string | undefined;

  constructor(engine: Engine, bounds: DiskBounds, logger: Logger | undefined) {
    this.#engine = engine;
    this.#watch = new DiskWatch({
      bounds,
      logger,
      readSpace: () => this.readSpace(),
      containers: () => this.#running.keys(),
      measure: (containerId) => this.#measure(containerId),
      end: (containerId) => this.#end(containerId),
    });
    this.#watch.start();
  }

  get problem(): string | undefined {
    return this.#watch.problem;
  }

  /** Sets whether tenants have quotas of disk. */
  setQuotas(hasQuotas: boolean): void {
    this.#watch.hasQuotas = hasQuotas;
  }

  /** Watches a container. `onFilled` runs before its end, so the reason is known before connections break. */
  add(containerId: string, onFilled: () => void): void {
    this.#running.set(containerId, onFilled);
  }

  remove(containerId: string): void {
    this.#running.delete(containerId);
  }

  /** Returns the bytes of a container at its last measurement. Undefined before the first. */
  sizeOf(containerId: string): number | undefined {
    return this.#watch.sizeOf(containerId);
  }

  close(): Promise<void> {
    return this.#watch.close();
  }

  /** Returns the space on the engine's disk; undefined when the engine does not reply or is on another machine. */
  async readSpace(): Promise<Space | undefined> {
    const find = async (docker: Docker): Promise<string> => (await docker.info()).DockerRootDir;
    this.#engineDirectory ??= await this.#engine.call(find).catch(() => undefined);
    return this.#engineDirectory === undefined ? undefined : readDiskSpace(this.#engineDirectory);
  }

  async #measure(containerId: string): Promise<number | undefined> {
    const abortSignal = AbortSignal.timeout(MEASURE_TIMEOUT_MS);
    const container = this.#engine.docker.getContainer(containerId);
    const options: object = { size: true, abortSignal };
    const answer: unknown = await container.inspect(options).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    return sizeSchema.safeParse(answer).data?.SizeRw;
  }

  /** Kills a container with all its processes. Its files stay until its removal. */
  async #end(containerId: string): Promise<void> {
    this.#running.get(containerId)?.();
    const kill = (docker: Docker, abortSignal: AbortSignal) => docker.getContainer(containerId).kill({ abortSignal });
    await this.#engine.call(kill).catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    });
  }
}
