import type { RowFault } from './row-fault.ts';

export const s1Faults: readonly RowFault[] = [
  {
    row: 'S1-22',
    file: 'apps/worker/src/output/truncate.ts',
    text: 'this.#count(bytes.length, newlines);',
    change: 'this.#count(0, newlines);',
  },
  {
    row: 'S1-23',
    file: 'apps/worker/src/output/truncate.ts',
    text: 'const lines = totals.totalLines > maxLines;',
    change: 'const lines = false;',
  },
  { row: 'S1-25', file: 'libs/client/src/model-text.ts', text: '`[stderr] ${line}`', change: 'line' },
  {
    row: 'S1-45',
    file: 'libs/client/src/model-text.ts',
    text: 'Command timed out after ',
    change: 'Command ended after ',
  },
  { row: 'S1-46', file: 'libs/client/src/model-text.ts', text: 'return withheld;', change: 'return [];' },
  { row: 'S1-47', file: 'libs/client/src/model-text.ts', text: "['<no output>']", change: '[]' },
  {
    row: 'S1-48',
    file: 'libs/client/src/model-text.ts',
    text: "    ...(outcome === 'failure' ? [ended] : []),\n",
    change: '',
  },
  {
    row: 'S1-50',
    file: 'libs/client/src/model-text.ts',
    text: 'redaction_matches: result.redactions,',
    change: 'redaction_matches: {},',
  },
];
