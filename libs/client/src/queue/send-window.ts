import { isShellfleetError } from '@shellfleet/protocol';

/**
 * Limits how many calls to Redis are in flight. Further calls wait unsent, in order, so that their deadlines do not
 * run.
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
      // Redis does not reply, so waiting calls, which were not sent, are rejected too.
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
