import type { BorrowedFleet, Fleets, Principal } from '@shellfleet/access';
import type { McpSettings } from '../settings.ts';
import type { McpConnection, OpenFleet } from './connection.ts';

/** The connection of one request over HTTP. It holds the fleet of its caller until it is disposed of. */
export class HttpConnection implements McpConnection, Disposable {
  readonly settings: McpSettings;
  readonly principal: Principal;
  readonly #fleets: Fleets;
  #borrowed: BorrowedFleet | undefined;
  #isOver = false;

  constructor(settings: McpSettings, fleets: Fleets, principal: Principal) {
    this.settings = settings;
    this.principal = principal;
    this.#fleets = fleets;
  }

  /** Absent unless the operator names one: requests of one caller may come from several models. */
  get defaultSession(): string | undefined {
    return this.settings.session;
  }

  async open(): Promise<OpenFleet> {
    const borrowed = await this.#fleets.borrow(this.principal);
    if (this.#isOver || this.#borrowed !== undefined) borrowed[Symbol.dispose]();
    else this.#borrowed = borrowed;
    return { fleet: borrowed.fleet, scopes: this.principal.scopes };
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#borrowed?.[Symbol.dispose]();
  }
}
