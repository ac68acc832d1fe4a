import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { MachineFacts } from './machine.ts';
import type { Target } from './targets.ts';

/**
 * Recorded runs, the oldest first, as the repository keeps them. They have ratios only, because absolute figures
 * depend on the machine.
 */
export type History = z.infer<typeof historySchema>;
export type HistoryEntry = History[number];

/** A ratio of this run, compared with that of the history. */
export interface Comparison {
  id: string;
  name: string;
  value: number;
  reference: number;
  passed: boolean;
}

const MOST_ENTRIES = 20;
/**
 * Number of recorded runs to compare with. With fewer, one lucky run would be the standard for all later ones; with
 * more, an improvement would be protected late.
 */
const COMPARED_WITH = 3;
/** Factor beyond which a ratio fails: it is worse than its reference by more than a quarter. */
const WORST = 1.25;

const text = z.string().min(1).max(200);
const historySchema = z
  .array(
    z.strictObject({
      at: z.iso.datetime(),
      commit: text.nullable(),
      machine: z.strictObject({ cpus: z.int().positive(), cpuModel: text, node: text, redis: text, docker: text }),
      ratios: z.record(text, z.number().positive()),
    }),
  )
  .max(MOST_ENTRIES);

/** Reads the history, which is empty before the first recorded run. */
export async function readHistory(path: string): Promise<History> {
  const json = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '[]';
    throw error;
  });
  try {
    return historySchema.parse(JSON.parse(json));
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    throw new Error(
      `${path} is not a history of the bench: ${reason}\nRestore it from git, or delete it to begin anew.`,
    );
  }
}

export async function writeHistory(path: string, history: History): Promise<void> {
  await writeFile(path, `${JSON.stringify(history, undefined, 2)}\n`);
}

export function toEntry(at: string, facts: MachineFacts, targets: readonly Target[]): HistoryEntry {
  const { commit, cpus, cpuModel, node, redis, docker } = facts;
  const ratios = Object.fromEntries(targets.filter(isRatio).map(({ id, value }) => [id, Number(value.toPrecision(4))]));
  return { at, commit, machine: { cpus, cpuModel, node, redis, docker }, ratios };
}

export function append(history: History, entry: HistoryEntry): History {
  return [...history, entry].slice(-MOST_ENTRIES);
}

/**
 * Compares ratios with the median of the last runs on as many processors. A ratio that these runs do not have is not
 * compared.
 */
export function compare(targets: readonly Target[], history: History, cpus: number): Comparison[] {
  const alike = history.filter(({ machine }) => machine.cpus === cpus).slice(-COMPARED_WITH);
  return targets.filter(isRatio).flatMap(({ id, name, value, bound }) => {
    const known = alike.flatMap(({ ratios }) => ratios[id] ?? []);
    if (known.length === 0) return [];
    const reference = median(known);
    const worse = bound === 'at most' ? value / reference : reference / value;
    return [{ id, name, value, reference, passed: worse <= WORST }];
  });
}

const isRatio = ({ unit }: Target): boolean => unit === '×';

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1]!, sorted[sorted.length >> 1]!];
  return (low + high) / 2;
}
