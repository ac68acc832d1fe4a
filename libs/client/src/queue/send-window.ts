import { isShellfleetError } from '@shellfleet/protocol';

/**
 * Lets so many calls be on their way to Redis at once, the others in call order behind them: a call's deadline runs from its sending, and
 * must not be spent in a line of our own making. A call that finds room is sent in the same step.
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
      // Who waits behind a call without an answer will get none either; none of them was sent.
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

/** Redis said nothing, as against no. */
function isWithoutAnswer(error: unknown): boolean {
  const cause = isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE' ? error.cause : error;
  return cause instanceof Error && !isShellfleetError(cause) && cause.name !== 'ReplyError';
}
