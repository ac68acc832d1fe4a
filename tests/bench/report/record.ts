import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Figures } from '../figures.ts';
import { append, type History, toEntry, writeHistory } from '../history.ts';
import type { MachineFacts } from '../machine.ts';
import type { Plan } from '../plan.ts';
import type { Target } from '../targets.ts';
import { renderChart } from './chart.ts';

/** A run of the benchmark, as the documentation records it. */
export interface Run {
  at: string;
  machine: MachineFacts;
  plan: Plan;
  figures: Figures;
  targets: readonly Target[];
  /** the tables, as they are printed */
  tables: string;
}

const PAGE = 'benchmarks.md';
const CHART = 'benchmarks.svg';
export const HISTORY = 'benchmarks.json';
const [BEGIN, END] = ['<!-- figures -->', '<!-- /figures -->'];

/** Writes a run to the documentation: the figures of its page, the chart next to it, and an item of the history. */
export async function record(run: Run, history: History, docs: string): Promise<string[]> {
  const { at, machine, plan, figures, targets } = run;
  const page = join(docs, PAGE);
  const text = withFigures(
    await readFile(page, 'utf8'),
    `${madeOn(run)}\n\n![Chart of the commands per second below](${CHART})\n\n${run.tables}`,
  );
  await writeFile(page, text);
  const made = `${at.slice(0, 10)}, ${machine.commit ?? 'no commit'}, ${machine.cpus} × ${machine.cpuModel}`;
  await writeFile(join(docs, CHART), renderChart(figures, plan, made));
  await writeHistory(join(docs, HISTORY), append(history, toEntry(at, machine, targets)));
  return [PAGE, CHART, HISTORY].map((name) => join(docs, name));
}

/** Returns the page with other figures between its two marks. */
export function withFigures(page: string, figures: string): string {
  const [before, rest, more] = page.split(BEGIN);
  const [, after, again] = rest?.split(END) ?? [];
  if (before === undefined || after === undefined || more !== undefined || again !== undefined)
    throw new Error(
      `docs/${PAGE} must have ${BEGIN} and, after it, ${END}, once each: the figures are written between them.`,
    );
  return `${before}${BEGIN}\n${figures}\n${END}${after}`;
}

function madeOn({ at, machine }: Run): string {
  const { commit, cpus, cpuModel, memoryBytes, kernel, node, redis, docker } = machine;
  return `\`npm run bench -- --record\` on ${at.slice(0, 10)}, commit ${commit ?? 'unknown'}: ${cpus} × ${cpuModel}, ${Math.round(memoryBytes / 2 ** 30)} GiB, Linux ${kernel}, Node ${node.replace('v', '')}, Redis ${redis}, Docker ${docker}.`;
}
