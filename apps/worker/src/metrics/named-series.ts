import { namesOfGreatest, OTHERS } from '@shellfleet/placement';

/** Tenants, and classes, of a metric that have series of their own. The others share one. */
export const MOST_NAMED = { tenants: 20, classes: 10 };

/** Number of sessions of a tenant in a class. */
export interface ClassCount {
  class: string;
  tenant: string;
  count: number;
}

/** Sums the counts by class and tenant. All but the tenants, and the classes, with the greatest counts are one. */
export function sumByNamed(counts: readonly ClassCount[]): ClassCount[] {
  const tenants = namedBy(({ tenant }) => tenant, counts, MOST_NAMED.tenants);
  const classes = namedBy((one) => one.class, counts, MOST_NAMED.classes);
  const sums = new Map<string, ClassCount>();
  for (const { count, ...of } of counts) {
    const labels = { class: orOthers(of.class, classes), tenant: orOthers(of.tenant, tenants) };
    const key = `${labels.class} ${labels.tenant}`;
    const sum = sums.get(key) ?? { ...labels, count: 0 };
    sum.count += count;
    sums.set(key, sum);
  }
  return [...sums.values()];
}

export const orOthers = (name: string, named: ReadonlySet<string>): string => (named.has(name) ? name : OTHERS);

function namedBy(nameOf: (one: ClassCount) => string, counts: readonly ClassCount[], most: number): Set<string> {
  const sums = new Map<string, number>();
  for (const one of counts) sums.set(nameOf(one), (sums.get(nameOf(one)) ?? 0) + one.count);
  return namesOfGreatest(sums, most);
}
