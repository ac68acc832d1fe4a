import type { PairTable } from './spots.ts';

// A table has 64 KiB. Sessions with the same rules and without secrets have equal tables, so they share one.

/** Most tables with which a new table is compared, at about 2 µs each. */
const MOST_TABLES = 16;

/** The tables that sessions have used last. */
let inUse: WeakRef<PairTable>[] = [];

/** Returns an equal table that another session uses, or else `table`. */
export function shareTable(table: PairTable): PairTable {
  const tables = inUse.flatMap((known) => known.deref() ?? []);
  const equal = tables.find(({ bits }) => Buffer.compare(bits, table.bits) === 0);
  const used = equal ?? table;
  inUse = [used, ...tables.filter((other) => other !== used)].slice(0, MOST_TABLES).map((one) => new WeakRef(one));
  return used;
}
