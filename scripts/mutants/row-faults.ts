/** A small fault that takes one behaviour of docs/behaviours.md away. The tests that the page names for the row must notice it. */
export interface RowFault {
  row: string;
  file: string;
  /** Stands exactly once in the file. */
  text: string;
  change: string;
}

/** One fault a row. Rows without one are about documents, or about what cannot be taken away by a small change. */
export const rowFaults: readonly RowFault[] = [
  {
    row: 'S0-22',
    file: 'libs/policy/src/execution/codex.ts',
    text: "    'sandbox',\n    ...(form",
    change: '    ...(form',
  },
  {
    row: 'S0-23',
    file: 'libs/policy/src/execution/codex.ts',
    text: 'Object.keys(config).sort()',
    change: 'Object.keys(config)',
  },
  {
    row: 'S0-29',
    file: 'libs/policy/src/execution/codex.ts',
    text: "return 'linux';",
    change: "return 'plain';",
  },
  {
    row: 'S0-33',
    file: 'libs/policy/src/execution/docker.ts',
    text: "    ...checkEnforceable('limits.cpuTimeSeconds', cpuTimeSeconds, NO_CPU_TIME),\n",
    change: '',
  },
];
