/** Begins or ends the subscription to the wake-ups of a tenant. */
interface TenantSubscriptions {
  subscribe(tenant: string): void;
  unsubscribe(tenant: string): void;
}

/** The tenants that have sessions on this host, to whose wake-ups the host subscribes. */
export class FollowedTenants {
  /** Number of sessions, by tenant. */
  readonly #counts = new Map<string, number>();
  #subscriptions: TenantSubscriptions | undefined;

  /** Subscribes to the wake-ups of the tenants from now on. */
  start(subscriptions: TenantSubscriptions): void {
    this.#subscriptions = subscriptions;
    this.subscribeAgain();
  }

  /** Subscribes once more, because a new connection to Redis may have lost subscriptions. */
  subscribeAgain(): void {
    for (const tenant of this.#counts.keys()) this.#subscriptions?.subscribe(tenant);
  }

  /** Counts a session of the tenant. */
  follow(tenant: string): void {
    const count = this.#counts.get(tenant) ?? 0;
    this.#counts.set(tenant, count + 1);
    if (count === 0) this.#subscriptions?.subscribe(tenant);
  }

  /** Counts one session less. */
  leave(tenant: string): void {
    const count = this.#counts.get(tenant) ?? 0;
    if (count > 1) this.#counts.set(tenant, count - 1);
    else if (this.#counts.delete(tenant)) this.#subscriptions?.unsubscribe(tenant);
  }
}
