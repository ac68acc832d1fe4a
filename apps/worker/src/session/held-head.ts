import type { HostMailbox } from '@shellfleet/mailbox';
import type { SessionAdmission } from '../admission/admission.ts';

/** Releases a head that is held under rules that have changed. It is decided again, as `forbid` outranks an answer. */
export class HeldHead {
  readonly #mailbox: HostMailbox;
  readonly #admission: SessionAdmission;
  /** Digest of the rules at the last look. Undefined at first, as an earlier owner may have held the head. */
  #lookedUnder: string | undefined;

  constructor(mailbox: HostMailbox, admission: SessionAdmission, epoch: number) {
    this.#mailbox = mailbox;
    this.#admission = admission;
    this.#lookedUnder = epoch === 0 ? admission.digest : undefined;
  }

  /** Releases the head if the rules have changed. Otherwise costs no call to Redis. */
  async look(): Promise<void> {
    const { digest } = this.#admission;
    if (digest === this.#lookedUnder) return;
    const head = await this.#mailbox.peek();
    if (head?.runnable === false && head.heldUnder !== digest) await this.#mailbox.releaseHeld(head.entry.id);
    this.#lookedUnder = digest;
  }
}
