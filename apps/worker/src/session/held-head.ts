import { answerHeld, type Owner, peek, retryWhileRedisIsDown } from '@shellfleet/mailbox';
import type { SessionAdmission } from '../admission/admission.ts';

/** The head of a session's mailbox, when it is held under rules that hold no more: it is judged again, and forbid wins over an answer to come. */
export class HeldHead {
  readonly #owner: Owner;
  readonly #admission: SessionAdmission;
  readonly #signal: AbortSignal;
  /** The digest of the last look; undefined: an earlier owner may have held the head. */
  #lookedUnder: string | undefined;

  constructor(owner: Owner, admission: SessionAdmission, epoch: number, signal: AbortSignal) {
    this.#owner = owner;
    this.#admission = admission;
    this.#signal = signal;
    this.#lookedUnder = epoch === 0 ? admission.digest : undefined;
  }

  /** Costs a call to Redis only when the rules have changed. */
  async look(): Promise<void> {
    const { digest } = this.#admission;
    if (digest === this.#lookedUnder) return;
    const head = await retryWhileRedisIsDown(() => peek(this.#owner), this.#signal);
    if (head?.runnable === false && head.heldUnder !== digest) {
      const { redis, keys } = this.#owner;
      await retryWhileRedisIsDown(() => answerHeld(redis, keys, head.entry.id, { type: 'release' }), this.#signal);
    }
    this.#lookedUnder = digest;
  }
}
