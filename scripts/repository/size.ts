import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../steps.ts';
import { MAX_COLUMNS } from './comments.ts';

// `npm run size`: prints the lines of source by part, without tests, benches, their support, documents and examples.
// `npm test` prints the same table.

const run = promisify(execFile);

const source = /\.(?:ts|c|h|lua|py|sh)$/;
const noSource = /(?:^|\/)(?:tests|test-support|fixtures|examples)\/|\.(?:test|bench)\.ts$|(?:^|\/)vitest\.config\.ts$/;

/** Returns the part of a tracked file, such as `apps/worker` or `scripts`, or undefined for other files than source. */
export function partOf(path: string): string | undefined {
  if (!source.test(path) || noSource.test(path)) return undefined;
  const [top = '', second = ''] = path.split('/');
  return ['apps', 'clients', 'libs', 'infra'].includes(top) ? `${top}/${second}` : top;
}

/** Counts the lines of a text. A line wider than {@link MAX_COLUMNS} counts as the lines that it would fill. */
export function countLines(text: string): number {
  const lines = text.split('\n');
  // A file ends with a line break.
  if (lines.at(-1) === '') lines.pop();
  return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / MAX_COLUMNS)), 0);
}

/** Returns the lines and files of source by part, of the files that git tracks. */
export async function measureSize(directory = root): Promise<Map<string, { files: number; lines: number }>> {
  const { stdout } = await run('git', ['ls-files', '-z'], { cwd: directory, maxBuffer: 1 << 26 });
  const parts = new Map<string, { files: number; lines: number }>();
  for (const path of stdout.split('\0')) {
    const part = partOf(path);
    if (part === undefined) continue;
    const text = await readFile(join(directory, path), 'utf8').catch(() => '');
    const sum = parts.get(part) ?? { files: 0, lines: 0 };
    parts.set(part, { files: sum.files + 1, lines: sum.lines + countLines(text) });
  }
  return parts;
}

/** Renders a table with a row for each part, the largest first, and the sum. */
export function renderSize(parts: ReadonlyMap<string, { files: number; lines: number }>): string {
  const rows = [...parts].toSorted(([, a], [, b]) => b.lines - a.lines);
  const sum = { files: 0, lines: 0 };
  for (const [, { files, lines }] of rows) {
    sum.files += files;
    sum.lines += lines;
  }
  return [
    `${'source'.padEnd(16)}${'lines'.padStart(7)}${'files'.padStart(7)}`,
    ...[...rows, ['all', sum] as const].map(renderRow),
  ].join('\n');
}

function renderRow([part, { files, lines }]: readonly [string, { files: number; lines: number }]): string {
  return `${part.padEnd(16)}${String(lines).padStart(7)}${String(files).padStart(7)}`;
}

if (import.meta.main) console.log(renderSize(await measureSize()));
