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
    row: 'S0-04',
    file: 'libs/policy/src/limits.ts',
    text: 'asked === undefined ? [] : [{ path, message: otherwise }]',
    change: '[{ path, message: otherwise }]',
  },
  { row: 'S0-05', file: 'libs/protocol/src/output-profiles.ts', text: 'maxLines: 100,', change: 'maxLines: 200,' },
  {
    row: 'S0-09',
    file: 'libs/policy/src/execution/host.ts',
    text: 'cpuTimeSeconds: limits.cpuTimeSeconds,',
    change: 'cpuTimeSeconds: undefined,',
  },
  {
    row: 'S0-14',
    file: 'libs/policy/src/execution/host.ts',
    text: 'addressSpaceBytes: controlGroups ? undefined : limits.memoryBytes,',
    change: 'addressSpaceBytes: undefined,',
  },
  {
    row: 'S0-15',
    file: 'libs/policy/src/execution/host.ts',
    text: 'addressSpaceBytes: controlGroups ? undefined : limits.memoryBytes,',
    change: 'addressSpaceBytes: controlGroups ? undefined : (limits.memoryBytes ?? 1),',
  },
  {
    row: 'S0-18',
    file: 'libs/policy/src/execution/host.ts',
    text: 'addressSpaceBytes: controlGroups ? undefined : limits.memoryBytes,',
    change: 'addressSpaceBytes: limits.memoryBytes,',
  },
  {
    row: 'S0-19',
    file: 'libs/policy/src/execution/host.ts',
    text: "    ...(controlGroups ? [] : checkEnforceable('limits.cpus', limits.cpus, NO_GROUPS)),\n",
    change: '',
  },
  { row: 'S0-21', file: 'libs/policy/src/execution/codex.ts', text: ', ...overrides }', change: ' }' },
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
    row: 'S0-24',
    file: 'apps/worker/src/sandbox/codex/codex-wall.ts',
    text: "if (platform !== 'linux') throw",
    change: "if (platform === 'win32') throw",
  },
  {
    row: 'S0-25',
    file: 'libs/policy/src/execution/codex.ts',
    text: "    ...(form === 'linux' ? ['linux'] : []),\n",
    change: '',
  },
  {
    row: 'S0-26',
    file: 'apps/worker/src/sandbox/codex/codex-wall.ts',
    text: 'npm install --global @openai/codex, or name',
    change: 'name',
  },
  { row: 'S0-29', file: 'libs/policy/src/execution/codex.ts', text: "return 'linux';", change: "return 'plain';" },
  {
    row: 'S0-31',
    file: 'libs/protocol/src/sandbox-table.ts',
    text: "  docker: {\n    usual: { mode: 'workspace-write', network: 'restricted' },",
    change: "  docker: {\n    usual: { mode: 'workspace-write', network: 'full' },",
  },
  {
    row: 'S0-33',
    file: 'libs/policy/src/execution/docker.ts',
    text: "    ...checkEnforceable('limits.cpuTimeSeconds', cpuTimeSeconds, NO_CPU_TIME),\n",
    change: '',
  },
  {
    row: 'S0-42',
    file: 'libs/policy/src/execution/docker.ts',
    text: 'workspace: workspace && { ...workspace, readOnly: isReadOnly || workspace.readOnly },',
    change: "workspace: { path: '/tmp', target: '/workspace', readOnly: isReadOnly },",
  },
  {
    row: 'S0-57',
    file: 'libs/policy/src/execution/codex.ts',
    text: 'const plan = planHost(spec, allowances);',
    change: 'const plan = { ...planHost(spec, allowances), group: undefined };',
  },
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
  {
    row: 'S3-07',
    file: 'libs/policy/src/exec/decision-table.ts',
    text: "    reject: 'ask',\n    omitted: 'forbid',\n  },\n};",
    change: "    reject: 'ask',\n    omitted: 'skip',\n  },\n};",
  },
  {
    row: 'S3-11',
    file: 'libs/policy/src/exec/decision-table.ts',
    text: "return approval === 'on-failure' || approval === 'unless-trusted';",
    change: 'return true;',
  },
  {
    row: 'S3-12',
    file: 'libs/protocol/src/sandbox-table.ts',
    text: "'danger-full-access': refused(IS_A_SANDBOX('bubblewrap')),",
    change: "'danger-full-access': enforced('all'),",
  },
  {
    row: 'S3-13',
    file: 'libs/protocol/src/sandbox-table.ts',
    text: "=> mode === 'read-only' || mode === 'workspace-write';",
    change: "=> mode === 'read-only';",
  },
  {
    row: 'S3-15',
    file: 'libs/policy/src/execution/docker.ts',
    text: 'readOnlyRootfs: isReadOnly || (',
    change: 'readOnlyRootfs: (',
  },
  {
    row: 'S3-16',
    file: 'libs/client/src/model-text.ts',
    text: "return [`Error: ${error?.message ?? 'The command was not run.'}`];",
    change: 'return [];',
  },
  {
    row: 'S3-17',
    file: 'libs/protocol/src/sandbox-table.ts',
    text: "sandbox?.selection === 'require' && !sandboxed",
    change: "sandbox?.selection === 'require' && sandboxed",
  },
  {
    row: 'S3-20',
    file: 'libs/protocol/src/sandbox-table.ts',
    text: "if (sandbox?.selection === 'forbid' && sandboxed)",
    change: "if (sandbox?.selection === 'forbid' && !sandboxed)",
  },
  {
    row: 'S3-21',
    file: 'libs/protocol/src/sandbox-table.ts',
    text: "if (sandbox?.selection === 'require' && !sandboxed)",
    change: "if (sandbox?.selection === 'require' && mode === 'external')",
  },
  {
    row: 'S3-24',
    file: 'libs/policy/src/exec/decision-table.ts',
    text: "    'unless-trusted': 'ask',\n    reject: 'skip',",
    change: "    'unless-trusted': 'skip',\n    reject: 'skip',",
  },
  {
    row: 'S3-26',
    file: 'libs/policy/src/exec/decision-table.ts',
    text: "row === 'prompt' ? approval.reject.rules : approval.reject.sandboxApproval",
    change: 'approval.reject.rules',
  },
  {
    row: 'S3-31',
    file: 'libs/policy/src/execution/docker.ts',
    text: 'readOnlyWorkspace: isReadOnly || workspace?.readOnly === true,',
    change: 'readOnlyWorkspace: false,',
  },
];
