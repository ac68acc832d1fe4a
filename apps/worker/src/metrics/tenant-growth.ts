import { orOthers } from './named-series.ts';

/**
 * Splits the growth of totals, one for each tenant, between tenants with a series of their own and all others. Which
 * tenants have one changes. If the totals of the others were summed instead, the sum would fall and leap with it, and a
 * rate would report growth that was none.
 */
export class TenantGrowth {
  #before: ReadonlyMap<string, number>;

  constructor(before: ReadonlyMap<string, number>) {
    this.#before = before;
  }

  /** Returns by how much the totals have grown since the last call, by label. */
  since(totals: ReadonlyMap<string, number>, named: ReadonlySet<string>): Map<string, number> {
    const growth = new Map<string, number>();
    for (const [tenant, total] of totals) {
      const label = orOthers(tenant, named);
      const grown = Math.max(0, total - (this.#before.get(tenant) ?? 0));
      growth.set(label, (growth.get(label) ?? 0) + grown);
    }
    this.#before = new Map(totals);
    return growth;
  }
}
