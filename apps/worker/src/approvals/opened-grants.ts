import { openGrant } from '@shellfleet/mailbox';
import type { ApprovalGrant, ApprovalKeys } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import { isAnswered } from './apply-answers.ts';

/** Maximum of kept grants. Further ones of scope `prefix` are opened again for each question. */
const KEPT = 1_000;

/** Caches opened grants, which each question of a tenant reads. Whether a grant holds is read from Redis each time. */
export class OpenedGrants {
  readonly #sealer: Sealer;
  /** Opened grants by place and sealed text, the oldest first. */
  readonly #opened = new Map<string, ApprovalGrant | undefined>();

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Opens a grant. Undefined when it was sealed for another question, or no known approver gave it. */
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
