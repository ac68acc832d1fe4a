import type { RowFault } from './row-fault.ts';

export const s0Faults: readonly RowFault[] = [
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
];
