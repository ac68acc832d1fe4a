import { readFileSync } from 'node:fs';
import type { MutantCheck } from './check-mutant.ts';
import type { Mutant } from './draw.ts';

export type CheckedMutant = Mutant & MutantCheck & { part: string };

/** A mutant that no test can detect, and the reason. */
interface Equivalent {
  file: string;
  before: string;
  after: string;
  why: string;
}

const equivalents = JSON.parse(readFileSync(new URL('equivalent.json', import.meta.url), 'utf8')) as Equivalent[];

/** Prints a row for each part, and then each survivor that is not known to be equivalent. */
export function printTable(checked: readonly CheckedMutant[]): void {
  const survivors = checked.filter((mutant) => mutant.verdict === 'survived' && !isEquivalent(mutant));
  console.log(
    '\n| Part | Mutants | Killed | Timeout | Equivalent | Survived | Killed of the rest |\n|---|---|---|---|---|---|---|',
  );
  for (const part of new Set(checked.map((mutant) => mutant.part))) {
    console.log(
      row(
        part,
        checked.filter((mutant) => mutant.part === part),
      ),
    );
  }
  console.log(row('all', checked));
  for (const { file, line, operator, before, after } of survivors) {
    console.log(`\n${file}:${line} (${operator})\n- ${before}\n+ ${after}`);
  }
}

function row(name: string, checked: readonly CheckedMutant[]): string {
  const count = (verdict: string): number => checked.filter((mutant) => mutant.verdict === verdict).length;
  const equivalent = checked.filter((mutant) => mutant.verdict === 'survived' && isEquivalent(mutant)).length;
  const killed = count('killed') + count('timeout');
  const percent = Math.round((1000 * killed) / Math.max(1, checked.length - equivalent)) / 10;
  const cells = [
    name,
    checked.length,
    count('killed'),
    count('timeout'),
    equivalent,
    count('survived') - equivalent,
    `${percent} %`,
  ];
  return `| ${cells.join(' | ')} |`;
}

export function isEquivalent({ file, before, after }: Mutant): boolean {
  return equivalents.some((one) => one.file === file && one.before === before && one.after === after);
}
