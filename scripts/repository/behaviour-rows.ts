import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../steps.ts';

interface BehaviourRow {
  id: string;
  /** Test files that show the row, as paths from the root. */
  tests: string[];
}

export interface BehavioursPage {
  rows: BehaviourRow[];
  /** Ids of the rows that the page lists as having no test. */
  unshown: string[];
}

export const behaviourId = /\bS[0-4]-\d{2}\b/g;

export async function readBehavioursPage(): Promise<BehavioursPage> {
  const page = await readFile(join(root, 'docs/behaviours.md'), 'utf8');
  const [table = '', unshown = ''] = page.split('## Shown by no test');
  const rows = Array.from(table.matchAll(/^\| (S[0-4]-\d{2}) \|[^|]*\|([^|]*)\|$/gm), ([, id = '', tests = '']) => ({
    id,
    tests: Array.from(tests.matchAll(/`([^`]+)`/g), ([, path]) => `${path}.test.ts`),
  }));
  return { rows, unshown: unshown.match(behaviourId) ?? [] };
}
