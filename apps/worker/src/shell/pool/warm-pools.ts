import { availableParallelism } from 'node:os';
import { type Repetition, repeat } from '@shellfleet/concurrency';
import {
  type ColdReason,
  type HostPool,
  isMovable,
  type PolicyName,
  type ResolvedSessionSpec,
} from '@shellfleet/protocol';
import type { PoolSettings } from '../../config/pools-section.ts';
import type { Logger } from '../../log/logger.ts';
import type { Sandbox, Sandboxes, SandboxImage, SessionRef } from '../../sandbox/sandbox.ts';
import { WarmPool } from './warm-pool.ts';
import type { WarmShell } from './warm-shell.ts';

// Sandboxes whose shells are ready before a session asks.
//
// WARM-1. A sandbox gets one session, whose record is written before the session uses it, and never another.
// WARM-2. A session gets a sandbox only if every option of its container is the one that a container made for this
//     session would have.
// WARM-3. A sandbox of a pool counts as a slot, and goes when its slot is needed: when a session opens a sandbox of its
//     own, when the host is short of memory, or when it drains. None is made while a session waits.

/** Interval at which the pools are compared with the demand. */
const TEND_MS = 1_000;
/** Sandboxes made at a time, so that a session which comes meanwhile is hardly delayed. */
const MADE_AT_A_TIME = availableParallelism();
/** Pods of pools that may be pending. A pool waits for no Pod: the cluster may need minutes to have room for it. */
const PENDING_PODS = 8;
/** Time after a session asked in which none is made: more sessions may come, and the first command runs soon. */
const QUIET_MS = 250;

/** What a host has left for sandboxes without a session. */
export interface PoolRoom {
  /** Most of them that the host can have. */
  most: number;
  /** Number up to which further ones may be made now. */
  fillTo: number;
}

export interface WarmPoolsDeps {
  settings: readonly PoolSettings[];
  sandboxes: Pick<Sandboxes, 'spares' | 'pull' | 'problem'>;
  limitOpening<T>(policy: PolicyName, open: () => Promise<T>): Promise<T>;
  room(): PoolRoom;
  logger: Logger;
}

export type TakenShell = { type: 'warm'; sandbox: Sandbox; shell: WarmShell } | { type: 'cold'; reason: ColdReason };

export class WarmPools {
  readonly #deps: WarmPoolsDeps;
  readonly #pools: readonly WarmPool[];
  #rounds: Repetition | undefined;
  #closed = false;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: WarmPoolsDeps) {
    const { settings, sandboxes } = deps;
    const { spares } = sandboxes;
    this.#deps = deps;
    this.#pools =
      spares === undefined
        ? []
        : settings.map((one) => new WarmPool(one, { ...deps, spares, onLost: () => this.tend() }));
  }

  /** Fills the pools, and compares them with the demand every second until closed. */
  start(): void {
    if (this.#pools.length === 0) return;
    this.#rounds = repeat(() => this.#tend(), {
      everyMs: TEND_MS,
      onError: (err) => this.#deps.logger.warn({ err }, 'pool.upkeep-failed'),
    });
    void this.#rounds.now();
  }

  /** Returns a ready sandbox, which is the session's from now on, or why there is none for it. Never rejects. */
  async take(session: SessionRef, spec: ResolvedSessionSpec, image?: SandboxImage): Promise<TakenShell> {
    const { spares } = this.#deps.sandboxes;
    const hasPool = this.#pools.some(({ policy }) => policy === spec.policy.type);
    if (!hasPool || spares === undefined) return cold('no-pool');
    // What is wrong with the session is reported when its sandbox is created.
    const found = await spares.keyOf(spec, image).catch(() => undefined);
    if (found === undefined) return cold('no-pool');
    if ('needsOwn' in found) return cold(found.needsOwn);
    const { key } = found;
    const pool = this.#pools.find((one) => one.hasKey(key));
    if (pool === undefined) return cold('no-pool');
    this.#askedAt = performance.now();
    const warm = pool.take(key);
    if (warm === undefined) return cold('empty');
    try {
      return { type: 'warm', sandbox: await warm.sandbox.assign(session), shell: warm.shell };
    } catch (err) {
      this.#deps.logger.warn({ err }, 'pool.assign-failed');
      pool.giveUp(warm);
      return cold('empty');
    }
  }

  /** Compares the pools with room and demand now, because either has changed. */
  tend(): void {
    if (!this.#closed) void this.#rounds?.now();
  }

  describe(): HostPool[] {
    return this.#pools.map((pool) => pool.describe());
  }

  /** Returns what the operator should know, one sentence each. */
  warnings(): string[] {
    return this.#pools.flatMap((pool) => pool.warning ?? []);
  }

  /** Removes all sandboxes without a session. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#rounds?.close();
    await Promise.all(this.#pools.map((pool) => pool.close()));
  }

  /** Ends when the pools have what is wanted, when there is no room, or when the pools that lack something pause. */
  async #tend(): Promise<void> {
    if (this.#deps.sandboxes.problem() !== undefined) return;
    for (;;) {
      await Promise.all(this.#pools.map((pool) => pool.tidy()));
      if (this.#closed) return;
      const { most, fillTo } = this.#deps.room();
      this.#shrinkTo(most);
      if (performance.now() - this.#askedAt < QUIET_MS) return;
      const free = Math.max(0, Math.min(most, fillTo) - this.#size);
      const lacking = this.#pools.flatMap((pool) => Array<WarmPool>(pool.lacking).fill(pool)).slice(0, free);
      const pending = this.#pools.reduce((sum, { policy, opening }) => sum + (isMovable(policy) ? opening : 0), 0);
      const pods = lacking.filter(({ policy }) => isMovable(policy)).slice(0, Math.max(0, PENDING_PODS - pending));
      for (const pool of pods) void pool.fill().then(() => this.tend());
      const others = lacking.filter(({ policy }) => !isMovable(policy)).slice(0, MADE_AT_A_TIME);
      if (others.length === 0) return;
      await Promise.all(others.map((pool) => pool.fill()));
    }
  }

  get #size(): number {
    return this.#pools.reduce((sum, { size }) => sum + size, 0);
  }

  /** Drops what is beyond `most`, from the last pool on. */
  #shrinkTo(most: number): void {
    let over = this.#size - most;
    for (const pool of this.#pools.toReversed()) over -= pool.drop(over);
  }
}

const cold = (reason: ColdReason): TakenShell => ({ type: 'cold', reason });
