import { readFileSync } from 'node:fs';
import type { Mutant } from './draw.ts';
import type { Judgement } from './judge.ts';

export type JudgedMutant = Mutant & Judgement & { part: string };

/** A mutant that no test can detect, and the reason. */
interface Equivalent {
  file: string;
  before: string;
  after: string;
  why: string;
}

const equivalents = JSON.parse(readFileSync(new URL('equivalent.json', import.meta.url), 'utf8')) as Equivalent[];

/** Prints a row for each part, and then each survivor that is not known to be equivalent. */
export function printTable(judged: readonly JudgedMutant[]): void {
  const survivors = judged.filter((mutant) => mutant.verdict === 'survived' && !isEquivalent(mutant));
  console.log(
    '\n| Part | Mutants | Killed | Timeout | Equivalent | Survived | Killed of the rest |\n|---|---|---|---|---|---|---|',
  );
  for (const part of new Set(judged.map((mutant) => mutant.part))) {
    console.log(
      row(
        part,
        judged.filter((mutant) => mutant.part === part),
      ),
    );
  }
  console.log(row('all', judged));
  for (const { file, line, operator, before, after } of survivors) {
    console.log(`\n${file}:${line} (${operator})\n- ${before}\n+ ${after}`);
  }
}

function row(name: string, judged: readonly JudgedMutant[]): string {
  const count = (verdict: string): number => judged.filter((mutant) => mutant.verdict === verdict).length;
  const equivalent = judged.filter((mutant) => mutant.verdict === 'survived' && isEquivalent(mutant)).length;
  const killed = count('killed') + count('timeout');
  const percent = Math.round((1000 * killed) / Math.max(1, judged.length - equivalent)) / 10;
  const cells = [
    name,
    judged.length,
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
