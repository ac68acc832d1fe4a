import { isUtf8 } from 'node:buffer';
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type PlacedTask, ShellfleetError } from '@shellfleet/client';
import { readLines } from '@shellfleet/protocol';

/** Tells whether a file has YAML, by its ending. What comes through a pipe has YAML if it begins like a list. */
export async function isYaml(path: string, isPipe: boolean, open: () => Readable): Promise<boolean> {
  if (!isPipe) return ['.yaml', '.yml'].includes(extname(path));
  // The end of this stream would close the file, which is read again.
  for await (const line of readLines(open().iterator({ destroyOnReturn: false }), path)) {
    const begin = line.toString().trim();
    if (begin !== '' && !begin.startsWith('#')) return begin.startsWith('-') || begin.startsWith('[');
  }
  return false;
}

/** Reads a list of tasks in YAML, which is held in memory. Each task has the line where it begins. */
export async function* readYamlTasks(path: string, input: Readable): AsyncGenerator<PlacedTask> {
  const { isSeq, LineCounter, parseDocument } = await import('yaml');
  const lines = new LineCounter();
  const document = parseDocument(await textOf(path, input), {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: true,
  });
  const [broken] = [...document.errors, ...document.warnings];
  if (broken !== undefined) throw invalid(`${path}:${lines.linePos(broken.pos[0]).line}: ${broken.message}`);
  const { contents } = document;
  if (!isSeq(contents)) throw invalid(`${path} is not a list of tasks. Begin each with "- id: …".`);
  // Limits how often aliases may repeat a part of the document.
  const tasks = document.toJS({ maxAliasCount: 1_000 }) as unknown[];
  for (const [index, task] of tasks.entries()) {
    const item = contents.items[index] as { range?: [number, number, number] | null } | undefined;
    yield { task, at: lines.linePos(item?.range?.[0] ?? 0).line };
  }
}

/** Returns the whole text of a file, which must be UTF-8, without a byte order mark. */
async function textOf(path: string, input: Readable): Promise<string> {
  const bytes = await buffer(input);
  // Some editors begin a file with the mark, which the parser takes for a scalar.
  if (isUtf8(bytes)) return bytes.toString().replace(/^\ufeff/, '');
  let at = 1;
  for await (const line of readLines(Readable.from([bytes]), path)) {
    if (!isUtf8(line)) break;
    at++;
  }
  throw notUtf8(`${path}:${at}`);
}

export const notUtf8 = (place: string): ShellfleetError =>
  invalid(`${place} has bytes that are not UTF-8. Write the file in this encoding.`);

function invalid(message: string): ShellfleetError {
  return new ShellfleetError('COMMAND_INVALID', `Nothing was run: ${message}`);
}
