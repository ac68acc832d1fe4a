import {
  ATTRIBUTES,
  type HostPool,
  isMovable,
  type PolicyName,
  type ResolvedSessionSpec,
  sessionSpecSchema,
} from '@shellfleet/protocol';
import type { PoolSettings } from '../../config/pools-section.ts';
import type { Logger } from '../../log/logger.ts';
import { removeSandbox, sandboxFields } from '../../sandbox/remove-sandbox.ts';
import { MissingImage, type Sandboxes, type SpareSandbox, type SpareSandboxes } from '../../sandbox/sandbox.ts';
import { WarmShell } from './warm-shell.ts';

/** Time over which sessions that ask are counted. The pool keeps as many sandboxes ready, between `min` and `max`. */
const DEMAND_MS = 30_000;
/** Interval at which the image's digest is looked up. Sandboxes with an older digest are replaced. */
const LOOK_UP_MS = 5_000;
const LEAST_RETRY_MS = 1_000;
const MOST_RETRY_MS = 60_000;

export interface WarmPoolDeps {
  spares: SpareSandboxes;
  sandboxes: Pick<Sandboxes, 'pull'>;
  /** Limits how many sandboxes of the host are opened at a time. */
  limitOpening<T>(policy: PolicyName, open: () => Promise<T>): Promise<T>;
  logger: Logger;
  /** Reports that a ready sandbox has ended. */
  onLost(): void;
}

/** A sandbox whose shell waits for a session. */
export interface WarmSandbox {
  readonly sandbox: SpareSandbox;
  readonly shell: WarmShell;
  /** Time when it became ready (ms, `performance.now()`). */
  readonly readyAt: number;
}

/** The ready sandboxes of one entry of `pools`. */
export class WarmPool {
  readonly #settings: PoolSettings;
  readonly #spec: ResolvedSessionSpec;
  readonly #deps: WarmPoolDeps;
  /** Ready sandboxes, the oldest first. */
  #ready: WarmSandbox[] = [];
  #opening = 0;
  /** Key of the sandboxes that are created now. Undefined until the image was found. */
  #key: string | undefined;
  #lookedUpAt = Number.NEGATIVE_INFINITY;
  /** Times at which sessions asked, within DEMAND_MS. */
  #askedAt: number[] = [];
  #asked = 0;
  #warm = 0;
  #failures = 0;
  #retryAt = Number.NEGATIVE_INFINITY;
  #problem: string | undefined;
  #pull: Promise<void> | undefined;
  readonly #removals = new Set<Promise<void>>();
  /** Sandboxes that are being started, and the fills under way. */
  readonly #starting = new Set<SpareSandbox>();
  readonly #fills = new Set<Promise<void>>();
  #closed = false;

  constructor(settings: PoolSettings, deps: WarmPoolDeps) {
    const { image, policy, limits, network } = settings;
    this.#settings = settings;
    this.#deps = deps;
    const named = image === 'default' ? {} : { image };
    this.#spec = sessionSpecSchema.parse({ policy, ...named, limits, sandbox: { network } });
  }

  /** Number of sandboxes that are ready or being opened. */
  get size(): number {
    return this.#ready.length + this.#opening;
  }

  get policy(): PolicyName {
    return this.#spec.policy.type;
  }

  /** Number of sandboxes that are being opened. */
  get opening(): number {
    return this.#opening;
  }

  /** Number of sandboxes that the pool should have. */
  get wanted(): number {
    const { min, max } = this.#settings;
    const since = performance.now() - DEMAND_MS;
    this.#askedAt = this.#askedAt.filter((at) => at >= since);
    return Math.min(max, Math.max(min, this.#askedAt.length));
  }

  /** Number of sandboxes that may be opened now. */
  get lacking(): number {
    const isPaused = this.#pull !== undefined || performance.now() < this.#retryAt;
    return isPaused ? 0 : Math.max(0, this.wanted - this.size);
  }

  hasKey(key: string): boolean {
    return this.#key === key || this.#ready.some(({ sandbox }) => sandbox.key === key);
  }

  /** Returns the oldest sandbox with the key that is alive, and forgets it. Counts the session that asks. */
  take(key: string): WarmSandbox | undefined {
    this.#asked += 1;
    this.#askedAt.push(performance.now());
    const found = this.#ready.find(({ sandbox, shell }) => sandbox.key === key && shell.connected);
    if (found === undefined) return undefined;
    this.#forget(found);
    this.#warm += 1;
    return found;
  }

  /** Looks up the key again, if that is due, and drops what is outdated or beyond the number that is wanted. */
  async tidy(): Promise<void> {
    if (performance.now() - this.#lookedUpAt >= LOOK_UP_MS) {
      const found = await this.#deps.spares.keyOf(this.#spec).catch(() => undefined);
      this.#lookedUpAt = performance.now();
      if (found !== undefined && 'key' in found) this.#key = found.key;
    }
    for (const outdated of this.#ready.filter(({ sandbox }) => sandbox.key !== this.#key)) this.#drop(outdated);
    this.drop(this.#ready.length - this.wanted);
  }

  /** Drops up to `count` sandboxes, the oldest first, and returns how many. */
  drop(count: number): number {
    const dropped = this.#ready.slice(0, Math.max(0, count));
    for (const warm of dropped) this.#drop(warm);
    return dropped.length;
  }

  /** Makes one sandbox ready. Never rejects: after a failure the pool pauses, longer each time. */
  fill(): Promise<void> {
    const filling = this.#fill().finally(() => this.#fills.delete(filling));
    this.#fills.add(filling);
    return filling;
  }

  async #fill(): Promise<void> {
    this.#opening += 1;
    try {
      // A Pod that waits for room takes no turn of those that sessions open.
      const open = () => this.#open();
      const warm = await (isMovable(this.policy) ? open() : this.#deps.limitOpening(this.policy, open));
      this.#failures = 0;
      this.#problem = undefined;
      this.#keep(warm);
    } catch (error) {
      if (error instanceof MissingImage) this.#beginPull(error.image);
      else if (!this.#closed) this.#pause(error);
    } finally {
      this.#opening -= 1;
    }
  }

  describe(): HostPool {
    const { image, network, min, max } = this.#settings;
    const [oldest] = this.#ready;
    return {
      ...{ image, network, min, max, ready: this.#ready.length, asked: this.#asked, warm: this.#warm },
      hitRate: this.#asked === 0 ? null : this.#warm / this.#asked,
      oldestMs: oldest === undefined ? null : Math.round(performance.now() - oldest.readyAt),
      problem: this.#problem ?? null,
    };
  }

  /** Returns why sandboxes are missing, in a sentence. Undefined if none is, or if they only take their time. */
  get warning(): string | undefined {
    const { wanted } = this;
    if (this.#problem === undefined || this.#ready.length >= wanted) return undefined;
    const sandboxes = `${this.#ready.length} of ${wanted} sandboxes`;
    return `The pool of the image ${this.#settings.image} has ${sandboxes} ready: ${this.#problem.replace(/\.?$/, '.')}`;
  }

  /** Removes a sandbox that was taken and that the session could not have after all. */
  giveUp(warm: WarmSandbox): void {
    this.#warm -= 1;
    this.#discard(warm);
  }

  /** Removes all its sandboxes, also those that are being started. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#starting].map((sandbox) => removeSandbox(sandbox, this.#deps.logger)));
    await Promise.all(this.#fills);
    this.drop(this.#ready.length);
    await Promise.all(this.#removals);
  }

  async #open(): Promise<WarmSandbox> {
    const { spares, logger } = this.#deps;
    const sandbox = await spares.create(this.#spec);
    this.#starting.add(sandbox);
    try {
      if (this.#closed) throw new Error('the pool is closed');
      const shell = await WarmShell.start(sandbox, {
        deadlineMs: this.#spec.startupTimeoutMs,
        onMessage: (message) => logger.warn({ ...sandboxFields(sandbox), message }, 'keeper.reported'),
      });
      return { sandbox, shell, readyAt: performance.now() };
    } catch (error) {
      await removeSandbox(sandbox, logger);
      throw error;
    } finally {
      this.#starting.delete(sandbox);
    }
  }

  #keep(warm: WarmSandbox): void {
    this.#ready.push(warm);
    void Promise.race([warm.sandbox.died, warm.shell.gone]).then(() => {
      if (!this.#ready.includes(warm)) return;
      this.#deps.logger.warn(sandboxFields(warm.sandbox), 'pool.sandbox-lost');
      this.#drop(warm);
      this.#deps.onLost();
    });
  }

  #drop(warm: WarmSandbox): void {
    this.#forget(warm);
    this.#discard(warm);
  }

  #forget(warm: WarmSandbox): void {
    this.#ready = this.#ready.filter((one) => one !== warm);
  }

  #discard({ sandbox, shell }: WarmSandbox): void {
    shell.close();
    const removal = removeSandbox(sandbox, this.#deps.logger).finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  #beginPull(image: string): void {
    this.#pull = this.#deps.sandboxes
      .pull(image)
      .catch((error: unknown) => this.#pause(error))
      .finally(() => {
        this.#pull = undefined;
      });
  }

  #pause(err: unknown): void {
    const pauseMs = Math.min(MOST_RETRY_MS, LEAST_RETRY_MS * 2 ** this.#failures);
    this.#failures += 1;
    this.#retryAt = performance.now() + pauseMs;
    this.#problem = err instanceof Error ? err.message : String(err);
    this.#deps.logger.warn({ err, [ATTRIBUTES.imageName]: this.#settings.image, pauseMs }, 'pool.fill-failed');
  }
}
