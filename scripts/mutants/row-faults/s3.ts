import type { RowFault } from './row-fault.ts';

export const s3Faults: readonly RowFault[] = [
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
