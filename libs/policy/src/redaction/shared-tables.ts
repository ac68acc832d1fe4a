import type { PairTable } from './spots.ts';

// A table has 64 KiB. Sessions with the same rules and no secrets of their own have equal tables, so they share one.

/** So many tables are compared with a new one, which takes about 2 µs each. */
const MOST_TABLES = 16;

/** The last tables that sessions use. */
let inUse: WeakRef<PairTable>[] = [];

/** An equal table that another session uses, or else `table`. */
export function shareTable(table: PairTable): PairTable {
  const tables = inUse.flatMap((known) => known.deref() ?? []);
  const equal = tables.find(({ bits }) => Buffer.compare(bits, table.bits) === 0);
  const used = equal ?? table;
  inUse = [used, ...tables.filter((other) => other !== used)].slice(0, MOST_TABLES).map((one) => new WeakRef(one));
  return used;
}
