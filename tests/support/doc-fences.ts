import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';

// The documents contain their own tests. Every fence has a language, and those of `sh`, `ts` and `py` are run.
// A comment before a fence, which readers do not see, is about that fence:
//
//   <!-- not run: the reason -->       the fence is not run, for this reason
//   <!-- setup sh ⏎ … -->              shell lines to run before the fence
//   <!-- setup ts ⏎ … -->              declarations that the fence's program needs besides its own
//   <!-- file: name.ts -->             the fence is saved under this name, and not run by itself
//
// `# → text` (in ts `// → text`) at the end of a line: the output, in sh that of this line, must contain the text.

export interface Fence {
  /** `docs/x.md:12` */
  place: string;
  language: string;
  code: string;
  notRun?: string;
  setup: { sh: string; ts: string };
  file?: string;
}

/** Returns the fences of a document, in order. */
export async function readFences(path: string): Promise<Fence[]> {
  const lines = (await readFile(join(checkoutRoot, path), 'utf8')).split('\n');
  const fences: Fence[] = [];
  let notes: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    if (line.startsWith('<!-- ')) {
      const end = lines.findIndex((later, index) => index >= at && later.endsWith('-->'));
      notes.push(
        lines
          .slice(at, end + 1)
          .join('\n')
          .slice('<!-- '.length, -'-->'.length)
          .trimEnd(),
      );
      at = end;
    } else if (line.startsWith('```')) {
      const end = lines.indexOf('```', at + 1);
      const code = lines.slice(at + 1, end).join('\n');
      fences.push({ place: `${path}:${at + 1}`, language: line.slice(3), code, ...readNotes(notes) });
      notes = [];
      at = end;
    } else if (line.trim() !== '') notes = [];
  }
  return fences;
}

function readNotes(notes: string[]): Pick<Fence, 'notRun' | 'setup' | 'file'> {
  const read: Pick<Fence, 'notRun' | 'setup' | 'file'> = { setup: { sh: '', ts: '' } };
  for (const note of notes) {
    const [, word = '', rest = ''] = /^(not run:|setup sh|setup ts|file:)\s*([\s\S]*)$/.exec(note) ?? [];
    if (word === 'not run:') read.notRun = rest;
    else if (word === 'file:') read.file = rest;
    else if (word === 'setup sh') read.setup.sh = rest;
    else if (word === 'setup ts') read.setup.ts = rest;
    else throw new Error(`A comment before a fence has an unknown form: ${note}`);
  }
  return read;
}

/** Returns the texts that the output of this code must contain according to the document. */
export function expectedTexts(code: string): string[] {
  return Array.from(code.matchAll(/(?:#|\/\/) → (.+)$/gm), ([, text = '']) => text.trim());
}
