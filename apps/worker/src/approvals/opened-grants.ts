import { openGrant } from '@shellfleet/mailbox';
import type { ApprovalGrant, ApprovalKeys } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import { isAnswered } from './apply-answers.ts';

/** Grants that are kept. A tenant that has more of scope `prefix` has them opened again for each question. */
const KEPT = 1_000;

/**
 * Opens grants, and keeps what was opened: every question of a tenant reads all of its grants of scope `prefix`, and
 * each has a signature where keys are configured. Whether a grant holds is read from Redis each time.
 */
export class OpenedGrants {
  readonly #sealer: Sealer;
  /** Opened grants by place and sealed text, the one that was opened first before the others. */
  readonly #opened = new Map<string, ApprovalGrant | undefined>();

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Returns undefined when the grant was not sealed for this question, or no known approver has given it. */
  open(id: string, sealed: string, keys: ApprovalKeys): ApprovalGrant | undefined {
    const name = `${keys.prefix}${id} ${sealed}`;
    if (this.#opened.has(name)) return this.#opened.get(name);
    const opened = openGrant(this.#sealer, keys, { id, sealed });
    const grant = opened && isAnswered(id, opened, keys, this.#sealer) ? opened : undefined;
    this.#opened.set(name, grant);
    for (const oldest of this.#opened.keys()) {
      if (this.#opened.size <= KEPT) break;
      this.#opened.delete(oldest);
    }
    return grant;
  }
}
