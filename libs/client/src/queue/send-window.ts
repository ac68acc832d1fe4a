import { type EntryPayload, isShellfleetError, LIMITS, ShellfleetError } from '@shellfleet/protocol';

// What a process sends and still has to remember: two bounds.
//
// BUDGET-1. A view holds a bounded number and size of entries without a Result, whose payloads stay in memory in case
//     Redis loses them. A submit beyond that is refused before anything is sent.

/**
 * Limits the calls to Redis that are in flight. Further calls wait unsent, in order, and their deadlines begin when
 * they are sent.
 */
export class SendWindow {
  readonly #room: number;
  #waiting: { send(): void; refuse(error: unknown): void }[] = [];
  #head = 0;
  #underWay = 0;

  constructor(room: number) {
    this.#room = room;
  }

  enter<T>(call: () => Promise<T>): Promise<T> {
    if (this.#underWay < this.#room) return this.#send(call);
    return new Promise((resolve, refuse) => {
      this.#waiting.push({ send: () => void this.#send(call).then(resolve, refuse), refuse });
    });
  }

  async #send<T>(call: () => Promise<T>): Promise<T> {
    this.#underWay++;
    try {
      return await call();
    } catch (error) {
      // Redis does not reply, so the calls that wait unsent are rejected too.
      if (isWithoutAnswer(error)) this.#refuseWaiting(error);
      throw error;
    } finally {
      this.#underWay--;
      this.#sendNext();
    }
  }

  #sendNext(): void {
    const next = this.#waiting[this.#head];
    if (next === undefined) {
      this.#waiting = [];
      this.#head = 0;
      return;
    }
    this.#head++;
    next.send();
  }

  #refuseWaiting(error: unknown): void {
    const waiting = this.#waiting.slice(this.#head);
    this.#waiting = [];
    this.#head = 0;
    for (const { refuse } of waiting) refuse(error);
  }
}

/** Tells whether Redis did not reply at all. */
function isWithoutAnswer(error: unknown): boolean {
  const cause = isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE' ? error.cause : error;
  return cause instanceof Error && !isShellfleetError(cause) && cause.name !== 'ReplyError';
}

/** The entries of a view that have no Result yet, including entries that were not sent yet. */
export class SubmitBudget {
  #entries = 0;
  #chars = 0;

  /** Takes room for one entry. The returned function releases the room, once. Throws QUOTA_EXCEEDED. */
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
