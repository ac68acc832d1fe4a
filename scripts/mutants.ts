import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkBaseline, checkMutant, type MutantCheck } from './mutants/check-mutant.ts';
import { checkRows } from './mutants/check-rows.ts';
import { copyCheckout } from './mutants/checkout-copy.ts';
import { drawMutants, type Mutant } from './mutants/draw.ts';
import { type Part, parts } from './mutants/parts.ts';
import { type CheckedMutant, isEquivalent, printTable } from './mutants/table.ts';
import { root } from './steps.ts';

// `npm run mutants`: makes small faults in the code, one at a time, and counts those that the tests detect.

const USAGE = `npm run mutants -- [options]
  --rows [ID…]   one fault for each row of docs/behaviours.md, or for the rows whose ids begin so;
                 the tests that the page names
  --part NAME    one part (${Object.keys(parts).join(', ')}); default: all
  --seed N       which mutants are drawn; default: 1
  --count N      mutants over all parts; default: 200
  --jobs N       mutants at a time; default: 1
  --timeout S    seconds that the tests of one mutant may take; default: 60, with --rows 300.
                 More on a busy machine: a timeout counts as noticed
  --again        check survivors and timeouts once more
  --fresh        forget earlier results of this seed
Results: .cache/mutants/seed-N.json. A run that was stopped goes on where it was.`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'boolean', default: false },
    part: { type: 'string' },
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '200' },
    jobs: { type: 'string', default: '1' },
    timeout: { type: 'string' },
    again: { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<void> {
  if (values.help) return console.log(USAGE);
  if (values.rows) {
    const survivors = await checkRows(root, positionals, Number(values.timeout ?? 300) * 1000);
    process.exitCode = survivors.length === 0 ? 0 : 1;
    return;
  }
  if (positionals.length > 0) throw new Error(`unknown words: ${positionals.join(' ')}\n${USAGE}`);
  const names = values.part === undefined ? Object.keys(parts) : values.part.split(',');
  const unknown = names.find((name) => parts[name] === undefined);
  if (unknown !== undefined) throw new Error(`no part has the name ${unknown}\n${USAGE}`);
  const checked: CheckedMutant[] = [];
  for (const name of names) checked.push(...(await checkPart(name, parts[name]!)));
  printTable(checked);
}

async function checkPart(name: string, part: Part): Promise<CheckedMutant[]> {
  const results = await Results.open(join(root, `.cache/mutants/seed-${values.seed}-${name}.json`));
  const order = await drawMutants(root, part, Number(values.seed));
  const wanted = Math.round((part.share * Number(values.count)) / 200);
  const checked: CheckedMutant[] = [];
  const timeoutMs = Number(values.timeout ?? 60) * 1000;
  let next = 0;
  let underWay = 0;
  const job = async (number: number): Promise<void> => {
    let copy: Awaited<ReturnType<typeof copyCheckout>> | undefined;
    while (next < order.length && checked.length + underWay < wanted) {
      const mutant = order[next++]!;
      underWay += 1;
      let result = results.of(mutant);
      if (result === undefined || (values.again && isWorthAnotherTry(mutant, result))) {
        if (copy === undefined) {
          copy = await copyCheckout(root, `${name}-${number}`);
          console.log(
            `${name}: ${order.length} possible mutants; the tests take ${await checkBaseline(copy, part, timeoutMs)} ms`,
          );
        }
        result = await checkMutant(copy, part, mutant, timeoutMs);
        await results.add(mutant, result);
        console.log(`${result.verdict} ${mutant.file}:${mutant.line} (${mutant.operator}, ${result.ms} ms)`);
      }
      underWay -= 1;
      if (result.verdict !== 'invalid') checked.push({ part: name, ...mutant, ...result });
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, (_, index) => job(index)));
  return checked;
}

function isWorthAnotherTry(mutant: Mutant, { verdict }: MutantCheck): boolean {
  return verdict === 'timeout' || (verdict === 'survived' && !isEquivalent(mutant));
}

/** Results of a seed's mutants, written to disk after each. */
class Results {
  readonly #path: string;
  readonly #known: Record<string, Mutant & MutantCheck>;

  private constructor(path: string, known: Record<string, Mutant & MutantCheck>) {
    this.#path = path;
    this.#known = known;
  }

  static async open(path: string): Promise<Results> {
    const text = values.fresh ? '{}' : await readFile(path, 'utf8').catch(() => '{}');
    return new Results(path, JSON.parse(text) as Record<string, Mutant & MutantCheck>);
  }

  of({ id }: Mutant): MutantCheck | undefined {
    return this.#known[id];
  }

  async add(mutant: Mutant, result: MutantCheck): Promise<void> {
    this.#known[mutant.id] = { ...mutant, ...result };
    await mkdir(dirname(this.#path), { recursive: true });
    await writeFile(`${this.#path}.new`, `${JSON.stringify(this.#known, null, 2)}\n`);
    await rename(`${this.#path}.new`, this.#path);
  }
}

await main();
