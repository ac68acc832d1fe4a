import type { HostMailbox } from '@shellfleet/mailbox';
import type { SessionAdmission } from '../admission/admission.ts';

/**
 * Releases the head of a session's mailbox when it is held under rules that hold no more: it is decided again, so that
 * `forbid` wins over an answer to come.
 */
export class HeldHead {
  readonly #mailbox: HostMailbox;
  readonly #admission: SessionAdmission;
  /** Digest of the rules at the last look; undefined while an earlier owner may have held the head. */
  #lookedUnder: string | undefined;

  constructor(mailbox: HostMailbox, admission: SessionAdmission, epoch: number) {
    this.#mailbox = mailbox;
    this.#admission = admission;
    this.#lookedUnder = epoch === 0 ? admission.digest : undefined;
  }

  /** Costs a call to Redis only when the rules have changed. */
  async look(): Promise<void> {
    const { digest } = this.#admission;
    if (digest === this.#lookedUnder) return;
    const head = await this.#mailbox.peek();
    if (head?.runnable === false && head.heldUnder !== digest) await this.#mailbox.releaseHeld(head.entry.id);
    this.#lookedUnder = digest;
  }
}
