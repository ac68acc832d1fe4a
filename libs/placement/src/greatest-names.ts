/** Name for those that are not listed by themselves. No id of a tenant and no class has parentheses. */
export const OTHERS = '(others)';

/** Returns the names with the greatest values, and the first ones among equals. */
export function namesOfGreatest(values: ReadonlyMap<string, number>, most: number): Set<string> {
  const sorted = [...values].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  return new Set(sorted.slice(0, most).map(([name]) => name));
}
