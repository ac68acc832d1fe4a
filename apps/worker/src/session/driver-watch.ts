import type { HostMailbox } from '@shellfleet/mailbox';

/** Idle time of a driven session before its driver is looked for, and interval after that. */
const LOOK_EVERY_MS = 1_000;
/** Time between the two looks that find no driver. After an outage a living driver renews its heartbeat sooner. */
const MISSING_FOR_MS = 2_000;

type Look = 'stays' | 'closing' | 'closing-before' | 'fenced';

/** Finds out whether the driver of an idle session is gone. */
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

  /** Whether the session is closing because its driver is gone. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Time until an idle session is to look for its driver again. Undefined when it need not look. */
  get pauseMs(): number | undefined {
    if (!this.#isDriven) return undefined;
    return this.#missingSince === undefined ? LOOK_EVERY_MS : MISSING_FOR_MS;
  }

  /** Closes the session when its driver is gone. Returns `closing-before` if an earlier call has begun that. */
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
    // `closing-before` may answer a repeated call whose first arrival has begun the close.
    this.#gone = how === 'close';
    return type;
  }
}
