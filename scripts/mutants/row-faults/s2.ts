import type { RowFault } from './row-fault.ts';

export const s2Faults: readonly RowFault[] = [
  {
    row: 'S2-01',
    file: 'libs/client/src/model-text.ts',
    text: 'denied.mayAsk && canEscalate ? [ask] : []',
    change: '[]',
  },
  {
    row: 'S2-02',
    file: 'apps/worker/src/output/truncate.ts',
    text: 'this.#totalBytes > maxBytes || !isWhole',
    change: '!isWhole',
  },
  {
    row: 'S2-03',
    file: 'libs/protocol/src/defaults.ts',
    text: 'commandTimeoutMs: 600_000',
    change: 'commandTimeoutMs: 60_000',
  },
  {
    row: 'S2-04',
    file: 'apps/worker/src/run/results.ts',
    text: "    case 'signalled':\n    case 'oom':",
    change:
      "    case 'signalled':\n      return { outcome: 'timeout', reason: 'wall', limitMs: timeoutMs };\n    case 'oom':",
  },
  {
    row: 'S2-05',
    file: 'libs/keeper/src/messages.ts',
    text: "toBytes(command.cwd ?? '')",
    change: "toBytes('')",
  },
  {
    row: 'S2-06',
    file: 'apps/worker/src/wider/create-wider.ts',
    text: 'openWide({ sandboxId, allowances }, context)',
    change: 'openWide({ sandboxId, allowances }, session)',
  },
  {
    row: 'S2-07',
    file: 'apps/worker/src/run/output-store.ts',
    text: 'const SETTLE_MS = 2;',
    change: 'const SETTLE_MS = 60_000;',
  },
  {
    row: 'S2-08',
    file: 'apps/worker/src/run/run-command.ts',
    text: "if (payload.reader === 'attached') run.reader",
    change: 'run.reader',
  },
  {
    row: 'S2-09',
    file: 'libs/policy/src/execution/bubblewrap.ts',
    text: "'--unshare-all', ",
    change: '',
  },
  {
    row: 'S2-10',
    file: 'apps/worker/src/sandbox/bubblewrap/bubblewrap-enclosure.ts',
    text: "const bwrap = await findSystemProgram('bwrap', path);\n  if (bwrap === undefined) throw unavailable('bubblewrap', 'it has no program bwrap (apt-get install bubblewrap)');",
    change: "const bwrap = (await findSystemProgram('bwrap', path)) ?? 'bwrap';",
  },
  { row: 'S2-11', file: 'libs/policy/src/execution/codex.ts', text: "    '--',\n", change: '' },
  {
    row: 'S2-12',
    file: 'libs/protocol/src/field-schemas.ts',
    text: 'if (hasLoneSurrogate(text)) refuse',
    change: 'if (limitBytes !== LIMITS.pathBytes && hasLoneSurrogate(text)) refuse',
  },
  {
    row: 'S2-13',
    file: 'apps/worker/src/shell/to-shell-end.ts',
    text: 'runMs: end.runMs,',
    change: 'runMs: 0,',
  },
  {
    row: 'S2-14',
    file: 'apps/worker/src/output/decode.ts',
    text: "return bytes.toString('utf8');",
    change: "return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);",
  },
  {
    row: 'S2-15',
    file: 'apps/worker/src/run/results.ts',
    text: 'const said = { stdout, stderr, output, truncated, totals, redactions };',
    change:
      "const kept = end.reason === 'wall' ? { stdout: '', stderr: '', output: '' } : { stdout, stderr, output };\n  const said = { ...kept, truncated, totals, redactions };",
  },
  {
    row: 'S2-16',
    file: 'apps/worker/src/run/results.ts',
    text: "const exitCode = 'exitCode' in ended ? ended.exitCode : null;",
    change: "const exitCode = 'exitCode' in ended ? ended.exitCode : -1;",
  },
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
    row: 'S2-19',
    file: 'apps/worker/src/run/finish-entry.ts',
    text: "const level = result.outcome === 'error' ? 'warn' : 'debug';",
    change: "const level = 'debug';",
  },
  {
    row: 'S2-20',
    file: 'libs/protocol/src/field-schemas.ts',
    text: "(script) => script.trim() !== '',",
    change: '() => true,',
  },
  {
    row: 'S2-21',
    file: 'libs/keeper/builtin/step.c',
    text: 'give_stream(0, kernel_open("/dev/null", READ_ONLY)) &&',
    change: 'own.go >= 0 &&',
  },
  {
    row: 'S2-22',
    file: 'libs/keeper/src/main.c',
    text: 'if (!output_open()) give_up(EXIT_NO_DIRECTORY);',
    change: 'output_open();',
  },
  {
    row: 'S2-23',
    file: 'libs/keeper/src/main.c',
    text: 'output_on_readable(tag - FIRST_OUTPUT);',
    change: 'output_on_readable(0);',
  },
  {
    row: 'S2-24',
    file: 'libs/keeper/src/entry.c',
    text: 'if (!cursor.bad && entry_is_busy() && is_entry(header)) stop(',
    change: 'if (!cursor.bad && entry_has_ended() && is_entry(header)) stop(',
  },
  {
    row: 'S2-25',
    file: 'libs/keeper/src/output.c',
    text: 'if (pipes[0].is_released && pipes[1].is_released) return 1;',
    change: 'return pipes[0].is_released && pipes[1].is_released;',
  },
  {
    row: 'S2-26',
    file: 'apps/worker/src/output/truncate.ts',
    text: "unit === 'characters' ? wholeHead",
    change: "unit === 'bytes' ? wholeHead",
  },
  {
    row: 'S2-27',
    file: 'apps/worker/src/run/output-store.ts',
    text: '    this.acknowledge(released.upTo);',
    change: '    if (released.overflow.length === 0) this.acknowledge(released.upTo);',
  },
  { row: 'S2-28', file: 'libs/client/src/model-text.ts', text: ' (observed ${observed}).', change: '.' },
  {
    row: 'S2-29',
    file: 'libs/keeper/src/entry.c',
    text: 'const int code = signal ? 128 + signal : WEXITSTATUS(status);',
    change: 'const int code = signal ? signal : WEXITSTATUS(status);',
  },
  {
    row: 'S2-30',
    file: 'libs/keeper/src/reaper.c',
    text: 'for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) { // ECHILD, the only failure, is the end\n    for (int i = 0; i < WATCHED; i++) {\n      if (children[i].pid != pid) continue;',
    change:
      'for (int i = 0; i < WATCHED; i++) {\n    {\n      if (!children[i].pid || children[i].has_ended || waitpid(children[i].pid, &status, WNOHANG) <= 0) continue;',
  },
  {
    row: 'S2-31',
    file: 'libs/client/src/submit/parse-command.ts',
    text: 'z.object({ script: scriptSchema, options',
    change: 'z.object({ script: z.string(), options',
  },
];
