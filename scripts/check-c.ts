// Checks the keeper's C: format, line length of its shell script, order of its files. `--write` formats instead.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { format } from '@wasm-fmt/clang-format';
import { root } from './steps.ts';

const DIRECTORIES = [
  'libs/keeper/src',
  'libs/keeper/builtin',
  'libs/keeper/launcher',
  'libs/keeper/fuzz',
  'tests/rules-trial',
  'tests/rules-trial/safe-programs',
];
const MOST_COLUMNS = 120;

interface Source {
  path: string;
  text: string;
}

async function main(write: boolean): Promise<number> {
  const style = await readFile(join(root, '.clang-format'), 'utf8');
  const directories = await Promise.all(DIRECTORIES.map(readSources));
  const problems = directories.flat().flatMap((source) => longLines(source));
  for (const { path, text } of directories.flat().filter((source) => /\.[ch]$/.test(source.path))) {
    const formatted = format(text, basename(path), style);
    if (formatted === text) continue;
    if (write) await writeFile(join(root, path), formatted);
    else problems.push(`${path}: not formatted (npm run format does it)`);
  }
  // Circles of files are searched in the keeper only, because the other directories have few files.
  const keeper = directories[0] ?? [];
  const pathOf = (name: string) => keeper.find(({ path }) => nameOf(path) === name)?.path ?? name;
  const circle = findCircle(toGraph(keeper));
  if (circle) problems.push(`a circle of files: ${circle.map(pathOf).join(' -> ')}`);
  for (const problem of problems) console.error(problem);
  return problems.length;
}

async function readSources(directory: string): Promise<Source[]> {
  const names = (await readdir(join(root, directory))).filter((name) => /\.(c|h|sh)$/.test(name)).sort();
  if (names.length === 0) throw new Error(`No C source in ${directory}: nothing was checked.`);
  return Promise.all(
    names.map(async (name) => ({
      path: `${directory}/${name}`,
      text: await readFile(join(root, directory, name), 'utf8'),
    })),
  );
}

function longLines({ path, text }: Source): string[] {
  return text
    .split('\n')
    .flatMap((line, index) =>
      line.length > MOST_COLUMNS ? [`${path}:${index + 1}: over ${MOST_COLUMNS} columns`] : [],
    );
}

const nameOf = (path: string): string => basename(path).replace(/\.[ch]$/, '');

/**
 * Returns for each file the files that it uses, by `#include` or by a call of their functions. A header counts as its
 * source file.
 */
function toGraph(sources: Source[]): Map<string, Set<string>> {
  const files = sources.filter(({ path }) => /\.[ch]$/.test(path));
  const definedIn = new Map<string, string>();
  for (const { path, text } of files.filter((file) => file.path.endsWith('.c'))) {
    for (const [, symbol] of text.matchAll(/^(?!static|typedef|#)\w[\w ]*[ *](\w+)\([^;]*$/gm))
      definedIn.set(symbol!, nameOf(path));
  }
  const graph = new Map<string, Set<string>>();
  for (const { path, text } of files) {
    const uses = graph.get(nameOf(path)) ?? new Set();
    graph.set(nameOf(path), uses);
    for (const [, header] of text.matchAll(/^#include "(\w+)\.h"/gm)) uses.add(header!);
    for (const [word] of text.replaceAll(/\/\/.*/g, '').matchAll(/\b\w+(?=[(,)])/g))
      uses.add(definedIn.get(word) ?? nameOf(path));
    uses.delete(nameOf(path));
  }
  return graph;
}

/** Returns the names in a cycle, with the first name repeated at the end, or undefined if there is no cycle. */
function findCircle(graph: Map<string, Set<string>>): string[] | undefined {
  const done = new Set<string>();
  const visit = (name: string, way: string[]): string[] | undefined => {
    if (way.includes(name)) return [...way.slice(way.indexOf(name)), name];
    if (done.has(name)) return undefined;
    for (const next of graph.get(name) ?? []) {
      const circle = visit(next, [...way, name]);
      if (circle) return circle;
    }
    done.add(name);
    return undefined;
  };
  for (const name of graph.keys()) {
    const circle = visit(name, []);
    if (circle) return circle;
  }
  return undefined;
}

process.exitCode = (await main(process.argv.includes('--write'))) === 0 ? 0 : 1;
