import { ATTRIBUTES } from '@shellfleet/protocol';
import { describeShortage, leastFree, type Space } from '../../host/free-space.ts';
import type { Logger } from '../../log/logger.ts';

// Limits the disk use of containers where the engine cannot. A container can exceed its limit until it is measured.
//
// DISK-1. Measuring a container walks its files, so it is done only after the free space of the engine's disk fell by a
//     step, and at long intervals. It takes at most a quarter of the time, except on a disk that is short.
// DISK-2. A container over its limit is ended. On a disk that is short, the container that grew most since its last
//     measurement is ended.
// DISK-3. One measurement runs at a time, of one container at a time.

const MIB = 2 ** 20;
const INTERVAL_MS = 500;
/**
 * Longest interval without a measurement. Free space alone is not enough, because one container's removals can hide
 * another's writes.
 */
const AT_LEAST_EVERY_MS = 300_000;
/** Longest interval while tenants have quotas of disk. */
const QUOTAS_EVERY_MS = 30_000;
/** Interval of measurements when the engine's disk is not visible from this machine. */
const UNSEEN_EVERY_MS = 60_000;
const SHORT_EVERY_MS = 2_000;
const MOST_OF_THE_TIME = 0.25;
/** Part of the limit by which free space may fall before containers are measured. */
const STEP = 1 / 8;
const USUAL_LIMIT_BYTES = 10 * 1_024 * MIB;
const USUAL_FREE_BYTES = 1_024 * MIB;
/** Least growth for which a container is ended on a disk that is short. */
const LEAST_GROWTH_BYTES = 16 * MIB;

export interface DiskBounds {
  /** Bytes that one container may write. Default: 10 GiB, or half of the disk if that is less. */
  limitBytes: number | undefined;
  /** Free bytes on the engine's disk below which it is short. */
  leastFreeBytes: number | undefined;
}

export interface DiskWatchDeps {
  bounds: DiskBounds;
  /** Returns the space of the engine's disk, or undefined when it is not visible. */
  readSpace(): Promise<Space | undefined>;
  containers(): Iterable<string>;
  /** Returns the bytes that a container has written, or undefined when it is gone. */
  measure(containerId: string): Promise<number | undefined>;
  end(containerId: string): Promise<void>;
  logger: Logger | undefined;
  now?(): number;
}

export class DiskWatch {
  readonly #deps: DiskWatchDeps;
  readonly #sizes = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #problem: string | undefined;
  /** The most free space since the last measurement. */
  #freeBytes: number | undefined;
  #measuredAt = Number.NEGATIVE_INFINITY;
  #measuringTookMs = 0;
  /** Whether tenants have quotas of disk, which need newer measurements. */
  hasQuotas = false;

  constructor(deps: DiskWatchDeps) {
    this.#deps = deps;
  }

  /** Reason why the host takes no new session at present. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Returns the bytes of a container at its last measurement. Undefined before the first. */
  sizeOf(containerId: string): number | undefined {
    return this.#sizes.get(containerId);
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.measureIfDue(), INTERVAL_MS);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  /** Measures the containers if a measurement is due (DISK-3). Never rejects. */
  measureIfDue(): Promise<void> {
    this.#looking ??= this.#lookNow()
      .catch((err: unknown) => this.#deps.logger?.warn({ err }, 'disk.measure-failed'))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  async #lookNow(): Promise<void> {
    const space = await this.#deps.readSpace();
    const { bounds } = this.#deps;
    const shortage =
      space &&
      describeShortage(
        "The Docker engine's disk",
        space,
        leastFree(space, bounds.leastFreeBytes, USUAL_FREE_BYTES),
        'SHELLFLEET_MIN_FREE_DISK',
      );
    this.#report(shortage);
    const limitBytes =
      bounds.limitBytes ?? Math.min(USUAL_LIMIT_BYTES, (space?.totalBytes ?? Number.POSITIVE_INFINITY) / 2);
    if (!this.#isDue(space, limitBytes, shortage !== undefined)) return;
    const from = this.#now();
    try {
      await this.#measureAll(limitBytes, shortage);
    } finally {
      this.#measuredAt = this.#now();
      this.#measuringTookMs = this.#measuredAt - from;
    }
    this.#freeBytes = space?.freeBytes;
  }

  #report(shortage: string | undefined): void {
    if (shortage !== undefined && this.#problem === undefined)
      this.#deps.logger?.warn({ problem: shortage }, 'host.short');
    if (shortage === undefined && this.#problem !== undefined) this.#deps.logger?.info('host.has-room');
    this.#problem = shortage;
  }

  #isDue(space: Space | undefined, limitBytes: number, isShort: boolean): boolean {
    const sinceMs = this.#now() - this.#measuredAt;
    if (isShort) return sinceMs >= SHORT_EVERY_MS;
    if (sinceMs < this.#measuringTookMs / MOST_OF_THE_TIME) return false;
    const usualMs = space === undefined ? UNSEEN_EVERY_MS : AT_LEAST_EVERY_MS;
    if (sinceMs >= (this.hasQuotas ? QUOTAS_EVERY_MS : usualMs)) return true;
    if (space === undefined) return false;
    this.#freeBytes = Math.max(this.#freeBytes ?? space.freeBytes, space.freeBytes);
    return this.#freeBytes - space.freeBytes >= limitBytes * STEP;
  }

  async #measureAll(limitBytes: number, shortage: string | undefined): Promise<void> {
    const grown: { containerId: string; bytes: number; growth: number }[] = [];
    const known = new Set(this.#deps.containers());
    for (const containerId of this.#sizes.keys()) if (!known.has(containerId)) this.#sizes.delete(containerId);
    let ended = 0;
    for (const containerId of known) {
      const bytes = await this.#deps.measure(containerId);
      if (bytes === undefined) continue;
      if (bytes > limitBytes) {
        ended += 1;
        await this.#end(containerId, bytes, `it wrote more than its limit of ${Math.floor(limitBytes / MIB)} MiB`);
      } else grown.push({ containerId, bytes, growth: bytes - (this.#sizes.get(containerId) ?? 0) });
      this.#sizes.set(containerId, bytes);
    }
    const most = grown.sort((a, b) => b.growth - a.growth)[0];
    if (shortage !== undefined && ended === 0 && most !== undefined && most.growth >= LEAST_GROWTH_BYTES)
      await this.#end(most.containerId, most.bytes, shortage);
  }

  async #end(containerId: string, bytes: number, why: string): Promise<void> {
    this.#deps.logger?.warn({ [ATTRIBUTES.containerId]: containerId, bytes, reason: why }, 'container.filled-disk');
    await this.#deps.end(containerId);
  }

  #now(): number {
    return this.#deps.now?.() ?? performance.now();
  }
}
