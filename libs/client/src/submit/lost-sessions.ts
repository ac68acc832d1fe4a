import { readGeneration } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import { isRestoring, noteLoss, RESTORING_MS, type RedisHistory } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

// LOST-SESSIONS-1. Redis may come back without a session whose shell is alive. If a producer then began a new
// generation, it would end that shell. So for 5 s no producer begins one, while hosts declare the sessions that they
// serve.

const POLL_MS = 100;

interface LostSessionsDeps {
  /** The main connection. Throws when its view is closed. */
  redis(): Redis;
  namespace: string;
  history: Pick<RedisHistory, 'changedAt'>;
  /** Whether Redis was being restored (`isRestoring`) when this view was opened. */
  wasRestoring: boolean;
}

/** The sessions that Redis may have lost, and that a host may still declare. */
export class LostSessions {
  readonly #deps: LostSessionsDeps;
  readonly #openedAt = performance.now();
  /** Waits under way. Entries of one session continue in the order in which they began to wait. */
  readonly #waits = new Map<string, Promise<void>>();

  constructor(deps: LostSessionsDeps) {
    this.#deps = deps;
  }

  /**
   * Notes that Redis has lost this generation. Resolves when this or a later generation is recorded, or after 5 s at
   * most.
   */
  async noticed(keys: SessionKeys, generation: string): Promise<void> {
    if (this.#leftMs() <= 0) return;
    // Tells other producers of the loss, because they too may begin a generation of a lost session.
    void noteLoss(this.#deps.redis(), this.#deps.namespace);
    await this.#untilDeclared(keys, generation);
  }

  /** Waits before a generation may begin. Does nothing unless Redis was replaced within the last 5 s. */
  async beforeGeneration(keys: SessionKeys): Promise<void> {
    if (this.#leftMs() > 0 && (await isRestoring(this.#deps.redis(), this.#deps.namespace)))
      await this.#untilDeclared(keys, '0');
  }

  #untilDeclared(keys: SessionKeys, generation: string): Promise<void> {
    const name = `${keys.member} ${generation}`;
    const waited = this.#waits.get(name);
    if (waited !== undefined) return waited;
    const wait = this.#wait(keys, Number(generation)).finally(() => this.#waits.delete(name));
    this.#waits.set(name, wait);
    return wait;
  }

  async #wait(keys: SessionKeys, generation: number): Promise<void> {
    const { redis } = this.#deps;
    for (const until = performance.now() + this.#leftMs(); performance.now() < until; await pause()) {
      const found = await readGeneration(redis(), keys);
      if (found !== undefined && Number(found.generation) >= generation && (generation > 0 || found.phase === 'open'))
        return;
    }
  }

  /**
   * Returns the time in ms that hosts still have to declare their sessions. A wall clock that is set back does not
   * lengthen it.
   */
  #leftMs(): number {
    const { history, wasRestoring } = this.#deps;
    const sinceChange = Date.now() - (history.changedAt ?? 0);
    const sinceOpened = wasRestoring ? performance.now() - this.#openedAt : RESTORING_MS;
    return Math.min(RESTORING_MS, RESTORING_MS - Math.min(sinceChange, sinceOpened));
  }
}

const pause = () => new Promise((resolve) => setTimeout(resolve, POLL_MS));
