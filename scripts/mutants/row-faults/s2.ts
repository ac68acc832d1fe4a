import type { RowFault } from './row-fault.ts';

export const s2Faults: readonly RowFault[] = [
  { row: 'S2-01', file: 'libs/client/src/model-text.ts', text: '(denied.mayAsk ? [ask] : [])', change: '[]' },
  {
    row: 'S2-03',
    file: 'libs/protocol/src/defaults.ts',
    text: 'commandTimeoutMs: 600_000',
    change: 'commandTimeoutMs: 60_000',
  },
  { row: 'S2-11', file: 'libs/policy/src/execution/codex.ts', text: "    '--',\n", change: '' },
  {
    row: 'S2-17',
    file: 'libs/client/src/model-text.ts',
    text: 'return [[describeDenied(denied), ...next].join',
    change: 'return [next.join',
  },
  {
    row: 'S2-18',
    file: 'libs/policy/src/exec/sandbox-denial.ts',
    text: 'if (denied !== undefined) return { denied, line };',
    change: "return { denied: denied ?? 'files', line };",
  },
  {
    row: 'S2-26',
    file: 'apps/worker/src/output/truncate.ts',
    text: "return this.#options.unit === 'characters' ? byLines.subarray(orphanedHead(byLines)) : byLines;",
    change: 'return byLines;',
  },
  { row: 'S2-28', file: 'libs/client/src/model-text.ts', text: ' (observed ${observed} ${unit}).', change: '.' },
];
