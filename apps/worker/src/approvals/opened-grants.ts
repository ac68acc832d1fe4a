import { type ApprovalGrant, type ApprovalKeys, approvalGrantSchema, tryJson } from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import { isAnswered } from './apply-answers.ts';

/** A tenant that has more approvals of prefixes has them opened again and again. */
const KEPT = 1_000;

/**
 * Opens grants, and keeps what was opened: every question of a tenant reads all of its approvals of prefixes, and each has a signature where
 * keys are configured. Whether a grant holds is read from Redis each time.
 */
export class OpenedGrants {
  readonly #sealer: Sealer;
  /** By place and sealed text, the one that was opened first before the others. */
  readonly #opened = new Map<string, ApprovalGrant | undefined>();

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Undefined when it was not sealed with a key of this fleet for this question, or no known approver has given it. */
  open(id: string, sealed: string, keys: ApprovalKeys): ApprovalGrant | undefined {
    const name = `${keys.prefix}${id} ${sealed}`;
    if (this.#opened.has(name)) return this.#opened.get(name);
    const grant = openGrant(id, sealed, keys, this.#sealer);
    this.#opened.set(name, grant);
    for (const oldest of this.#opened.keys()) {
      if (this.#opened.size <= KEPT) break;
      this.#opened.delete(oldest);
    }
    return grant;
  }
}

function openGrant(id: string, sealed: string, keys: ApprovalKeys, sealer: Sealer): ApprovalGrant | undefined {
  try {
    const text = sealer.open(sealed, sealPlace('approval-grant', keys, { question: id }));
    const grant = approvalGrantSchema.safeParse(tryJson(text)).data;
    return grant && isAnswered(id, grant, keys, sealer) ? grant : undefined;
  } catch {
    return undefined;
  }
}
