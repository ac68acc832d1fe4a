import type { FleetLease, Fleets, Principal } from '@shellfleet/access';
import type { McpSettings } from '../settings.ts';
import type { McpConnection, OpenFleet } from './connection.ts';

/** The connection of one request over HTTP. It holds the fleet of its caller until it is disposed of. */
export class HttpConnection implements McpConnection, Disposable {
  readonly settings: McpSettings;
  readonly principal: Principal;
  readonly #fleets: Fleets;
  #lease: FleetLease | undefined;
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
    const lease = await this.#fleets.lease(this.principal);
    if (this.#isOver || this.#lease !== undefined) lease[Symbol.dispose]();
    else this.#lease = lease;
    return { fleet: lease.fleet, scopes: this.principal.scopes };
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#lease?.[Symbol.dispose]();
  }
}
