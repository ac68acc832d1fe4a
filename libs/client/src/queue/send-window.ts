import { isShellfleetError } from '@shellfleet/protocol';

/**
 * Limits how many calls to Redis are in flight. Further calls wait in call order, unsent, so that their deadline does not run meanwhile. A call
 * that finds room is sent in the same step.
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
      // Redis does not answer, so the waiting calls are rejected too. None of them was sent.
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

/** True when Redis did not reply, false when it replied with an error. */
function isWithoutAnswer(error: unknown): boolean {
  const cause = isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE' ? error.cause : error;
  return cause instanceof Error && !isShellfleetError(cause) && cause.name !== 'ReplyError';
}
