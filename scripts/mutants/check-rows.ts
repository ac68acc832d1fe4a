import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readBehavioursPage } from '../repository/behaviour-rows.ts';
import { checkBaseline, checkMutant } from './check-mutant.ts';
import { type CheckoutCopy, copyCheckout } from './checkout-copy.ts';
import type { Mutant } from './draw.ts';
import type { Part } from './parts.ts';
import type { RowFault } from './row-faults/row-fault.ts';
import { rowFaults } from './row-faults.ts';

/**
 * Puts each fault of `rowFaults` into a copy of the checkout and runs the tests that docs/behaviours.md names for its
 * row. `only`: ids or beginnings of ids; an empty list means all rows. Prints a line for each row. Returns the rows
 * whose fault no test notices, and the rows whose tests fail without the fault.
 */
export async function checkRows(root: string, only: readonly string[], timeoutMs: number): Promise<string[]> {
  const { rows } = await readBehavioursPage();
  const wanted = rowFaults.filter(({ row }) => only.length === 0 || only.some((id) => row.startsWith(id)));
  if (wanted.length === 0) throw new Error(`no row has a fault: ${only.join(', ')}`);
  const copy = await copyCheckout(root, 'rows');
  const survivors: string[] = [];
  const broken = new BrokenTests(copy, timeoutMs);
  for (const fault of wanted) {
    const tests = rows.find(({ id }) => id === fault.row)?.tests ?? [];
    const unusable = await broken.among(tests);
    if (unusable !== undefined) {
      survivors.push(fault.row);
      console.log(`${fault.row} not checked: ${unusable}`);
      continue;
    }
    const { verdict, by, ms } = await checkMutant(copy, partOf(tests), await toMutant(root, fault), timeoutMs);
    if (verdict !== 'killed' && verdict !== 'timeout') survivors.push(fault.row);
    console.log(`${fault.row} ${verdict} (${fault.file}, ${ms} ms)${by === undefined ? '' : `: ${by}`}`);
  }
  console.log(
    `${wanted.length} rows, ${wanted.length - survivors.length} noticed; not: ${survivors.join(' ') || 'none'}`,
  );
  return survivors;
}

/** Test files that fail without a fault, so that their failure with a fault proves nothing. */
class BrokenTests {
  readonly #copy: CheckoutCopy;
  readonly #timeoutMs: number;
  readonly #known = new Map<string, string | undefined>();

  constructor(copy: CheckoutCopy, timeoutMs: number) {
    this.#copy = copy;
    this.#timeoutMs = timeoutMs;
  }

  /** Runs the files that have not run yet. Returns the message of the first file that fails. */
  async among(tests: readonly string[]): Promise<string | undefined> {
    for (const test of tests) {
      if (!this.#known.has(test)) this.#known.set(test, await this.#failureOf(test));
      const failure = this.#known.get(test);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  #failureOf(test: string): Promise<string | undefined> {
    return checkBaseline(this.#copy, partOf([test]), this.#timeoutMs).then(
      () => undefined,
      (error: Error) => error.message,
    );
  }
}

/** Puts tests next to the source first, because they are quick. */
function partOf(tests: readonly string[]): Part {
  const beside = tests.filter((path) => !path.startsWith('tests/'));
  const above = tests.filter((path) => path.startsWith('tests/'));
  return { files: [], share: 0, tests: [beside, above].filter((paths) => paths.length > 0) };
}

async function toMutant(root: string, { row, file, text, change }: RowFault): Promise<Mutant> {
  const from = (await readFile(join(root, file), 'utf8')).indexOf(text);
  if (from < 0) throw new Error(`${file} lacks the text of the fault of ${row}`);
  const edit = { from, to: from + text.length, text: change, operator: 'row' };
  return { id: row, file, line: 0, before: text, after: change, ...edit };
}
