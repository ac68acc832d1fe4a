import { createHash } from 'node:crypto';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Edit, editsOf } from './operators.ts';
import { languageOf, type Part } from './parts.ts';

export interface Mutant extends Edit {
  /**
   * Id that depends only on the line, the number of equal lines above it
   * and the seed, so that edits elsewhere do not change a draw.
   */
  id: string;
  file: string;
  line: number;
  before: string;
  after: string;
}

/**
 * Returns all mutants of a part in the order in which they are drawn:
 * first a mutant of each line, so that no long line is preferred.
 */
export async function drawMutants(root: string, part: Part, seed: number): Promise<Mutant[]> {
  const paths: string[] = [];
  for (const pattern of part.files) for await (const path of glob(pattern, { cwd: root })) paths.push(path);
  const sources = paths.filter((path) => !/\.(?:test|bench)\.ts$/.test(path)).sort();
  const mutants = await Promise.all(
    sources.map(async (file) => mutantsOf(file, await readFile(join(root, file), 'utf8'), seed)),
  );
  return inOrder(mutants.flat());
}

export function mutantsOf(file: string, source: string, seed: number): Mutant[] {
  const likeLines = new Map<string, number>();
  const occurrences = source.split('\n').map((text) => {
    const line = text.trim();
    likeLines.set(line, (likeLines.get(line) ?? 0) + 1);
    return likeLines.get(line);
  });
  return editsOf(source, languageOf(file)).map((edit) => {
    const line = source.slice(0, edit.from).split('\n').length;
    const start = source.lastIndexOf('\n', edit.from - 1) + 1;
    const end = (source.indexOf('\n', edit.to) + 1 || source.length + 1) - 1;
    const before = source.slice(start, end);
    const after = source.slice(start, edit.from) + edit.text + source.slice(edit.to, end);
    const id = hash(`${seed} ${file} ${before.trim()} ${occurrences[line - 1]} ${edit.from - start} ${after.trim()}`);
    return { id, file, line, before: before.trim(), after: after.trim(), ...edit };
  });
}

function inOrder(mutants: readonly Mutant[]): Mutant[] {
  const ofLine = new Map<string, number>();
  return mutants
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map((mutant) => {
      const place = `${mutant.file}:${mutant.line}`;
      const round = ofLine.get(place) ?? 0;
      ofLine.set(place, round + 1);
      return { mutant, round };
    })
    .sort((a, b) => a.round - b.round)
    .map(({ mutant }) => mutant);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
