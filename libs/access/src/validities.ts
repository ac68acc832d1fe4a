import type { ApiKeys } from '@shellfleet/client';
import { ShellfleetError } from '@shellfleet/protocol';
import type { AccessLog } from './access-log.ts';
import type { Principal } from './principal.ts';

/** Interval at which the keys of open streams are looked up. With the reply of Redis it is below a second. */
const LOOK_EVERY_MS = 400;

/** The validity of the token by which a stream was opened. Its disposal ends the observation. */
export interface Validity extends Disposable {
  /** Signal that aborts within a second after the token was revoked or has expired. */
  readonly signal: AbortSignal;
}

interface Observed {
  readonly principal: Principal;
  readonly controller: AbortController;
}

/** The tokens of all open streams of the process. One timer and one call to Redis serve them. */
export class Validities {
  readonly #keys: Pick<ApiKeys, 'findWorking'>;
  readonly #log: AccessLog;
  readonly #observed = new Set<Observed>();
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  /** Whether the last call to Redis failed, so that an outage has one line in the log. */
  #isBlind = false;

  constructor(keys: Pick<ApiKeys, 'findWorking'>, log: AccessLog) {
    this.#keys = keys;
    this.#log = log;
  }

  open(principal: Principal): Validity {
    const observed = { principal, controller: new AbortController() };
    this.#observed.add(observed);
    this.#timer ??= setInterval(() => void this.#look(), LOOK_EVERY_MS).unref();
    return { signal: observed.controller.signal, [Symbol.dispose]: () => this.#remove(observed) };
  }

  close(): void {
    this.#observed.clear();
    this.#stopTimer();
  }

  async #look(): Promise<void> {
    this.#endExpired();
    if (this.#isLooking) return;
    this.#isLooking = true;
    // Streams that open during the call are looked up by the next one.
    const observed = [...this.#observed];
    const ids = new Set(observed.flatMap(({ principal }) => principal.keyId ?? []));
    try {
      const working = await this.#keys.findWorking([...ids]);
      for (const one of observed) {
        const { keyId } = one.principal;
        if (keyId !== undefined && !working.has(keyId)) this.#end(one, 'was revoked or has expired');
      }
      this.#isBlind = false;
    } catch (error) {
      // While Redis is away, streams have nothing to send. They go on if their keys still work when it is back.
      if (!this.#isBlind) this.#log.warn({ err: error }, 'keys.unobserved');
      this.#isBlind = true;
    } finally {
      this.#isLooking = false;
    }
  }

  #endExpired(): void {
    const now = Date.now();
    for (const one of this.#observed)
      if (one.principal.expiresAt !== undefined && one.principal.expiresAt <= now) this.#end(one, 'has expired');
  }

  #end(observed: Observed, why: string): void {
    if (!this.#observed.has(observed)) return;
    this.#remove(observed);
    const { caller } = observed.principal;
    observed.controller.abort(new ShellfleetError('UNAUTHORIZED', `The token of ${caller.name} ${why}.`));
  }

  #remove(observed: Observed): void {
    this.#observed.delete(observed);
    if (this.#observed.size === 0) this.#stopTimer();
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
