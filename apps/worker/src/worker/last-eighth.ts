/**
 * Part of a host's places that only tenants with less than this part get. So no tenant, however many sessions it opens,
 * takes a whole host.
 */
const PART = 1 / 8;

/**
 * Returns the tenants to which this host gives no further place at present. `held` has the sessions of each tenant
 * here, and `places` is the most sessions for which the host has slots and memory. A host with fewer than 8 places
 * keeps none for others, because an eighth of them is less than one.
 */
export function tenantsWithTheirPart(held: ReadonlyMap<string, number>, places: number): string[] {
  const part = places * PART;
  if (places - countAll(held) > part) return [];
  return [...held].flatMap(([tenant, count]) => (count >= part ? [tenant] : []));
}

/** Returns how many further sessions the host can take before `tenantsWithTheirPart` changes; at least one. */
export function takenAtOnce(held: ReadonlyMap<string, number>, places: number): number {
  return Math.max(1, Math.ceil(places - countAll(held) - places * PART));
}

const countAll = (held: ReadonlyMap<string, number>) => [...held.values()].reduce((sum, count) => sum + count, 0);
