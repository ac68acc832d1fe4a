import type { HostMailbox } from '@shellfleet/mailbox';

/** How long a driven session has nothing to do before its driver is looked for, and how often it is then. */
const LOOK_EVERY_MS = 1_000;
/**
 * A driver is gone when it is missing in two looks so far apart. It has this time to renew its heartbeat in a Redis
 * that was away.
 */
const MISSING_FOR_MS = 2_000;

type Look = 'stays' | 'closing' | 'closing-before' | 'fenced';

/** Finds out whether the driver of an idle session is gone. A session without a driver costs nothing here. */
export class DriverWatch {
  readonly #mailbox: Pick<HostMailbox, 'closeUndriven'>;
  readonly #isDriven: boolean;
  #lookedAt = 0;
  #missingSince: number | undefined;
  #gone = false;

  constructor(mailbox: Pick<HostMailbox, 'closeUndriven'>, isDriven: boolean) {
    this.#mailbox = mailbox;
    this.#isDriven = isDriven;
  }

  /** The session is closing because its driver is gone. */
  get gone(): boolean {
    return this.#gone;
  }

  /** How long an idle session waits for its next look; undefined when it needs none. */
  get pauseMs(): number | undefined {
    if (!this.#isDriven) return undefined;
    return this.#missingSince === undefined ? LOOK_EVERY_MS : MISSING_FOR_MS;
  }

  /**
   * Begins to close the session when its driver is gone. Returns `closing-before` when somebody else seems to have.
   * `activeAt` is when the session last had something to do, by `performance.now()`.
   */
  look(activeAt: number): Look | Promise<Look> {
    const pauseMs = this.pauseMs;
    return pauseMs === undefined ? 'stays' : this.#look(activeAt, pauseMs);
  }

  async #look(activeAt: number, pauseMs: number): Promise<Look> {
    if (activeAt > (this.#missingSince ?? activeAt)) this.#missingSince = undefined;
    if (performance.now() - Math.max(activeAt, this.#lookedAt) < pauseMs) return 'stays';
    const how = this.#missingSince === undefined ? 'look' : 'close';
    const { type } = await this.#mailbox.closeUndriven(how);
    this.#lookedAt = performance.now();
    this.#missingSince = type === 'undriven' ? this.#lookedAt : undefined;
    if (type === 'stays' || type === 'undriven') return 'stays';
    // `closing-before` may be the reply to a repeated call, whose first arrival has begun to close it.
    this.#gone = how === 'close';
    return type;
  }
}
