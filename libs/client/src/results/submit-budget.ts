import { type EntryPayload, LIMITS, ShellfleetError } from '@shellfleet/protocol';

// BUDGET-1. A view holds a bounded number and size of entries without a Result, whose payloads stay in memory in case
//     Redis loses them. A submit beyond that is refused before anything is sent.

/** The entries of a view that have no Result yet, unsent ones included. */
export class SubmitBudget {
  #entries = 0;
  #chars = 0;

  /** Takes room for one entry. The returned function releases it, once. Throws QUOTA_EXCEEDED. */
  take(payload: EntryPayload): () => void {
    const chars = sizeOf(payload);
    if (this.#entries >= LIMITS.producerPending || this.#chars + chars > LIMITS.producerPendingChars)
      throw refusal(this.#entries, this.#chars);
    this.#entries++;
    this.#chars += chars;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#entries--;
      this.#chars -= chars;
    };
  }
}

/** Returns the characters of the large fields of a payload. */
function sizeOf(payload: EntryPayload): number {
  switch (payload.type) {
    case 'command': {
      const env = Object.entries(payload.env ?? {}).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
      return payload.script.length + (payload.stdin?.length ?? 0) + env;
    }
    case 'file':
      return payload.operation.name === 'write' ? payload.operation.data.length : 0;
    case 'restart':
      return 0;
  }
}

function refusal(entries: number, chars: number): ShellfleetError {
  return new ShellfleetError(
    'QUOTA_EXCEEDED',
    `This process waits for ${entries} commands with ${chars} characters, and ${LIMITS.producerPending} with ${LIMITS.producerPendingChars} are the limit. Wait for some of their results, then submit again.`,
    { waiting: entries, limit: LIMITS.producerPending, chars, limitChars: LIMITS.producerPendingChars },
  );
}
