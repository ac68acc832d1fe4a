import type { RowFault } from './row-fault.ts';

export const s4Faults: readonly RowFault[] = [
  {
    row: 'S4-01',
    file: 'apps/worker/src/tools/tool-process.ts',
    text: 'const { exitCode, signal } = await exited;',
    change: "const { exitCode, signal } = await exited;\n    if (signal === 'SIGSEGV') globalThis.process.exit(1);",
  },
  {
    row: 'S4-03',
    file: 'libs/client/src/tools/call-tool.ts',
    text: "  .positive('must be positive')\n",
    change: '',
  },
  {
    row: 'S4-04',
    file: 'apps/worker/src/tools/load-tools.ts',
    text: "logger.error({ module: described.module, reason: described.refused }, 'tools.module-refused');",
    change: 'continue;',
  },
  {
    row: 'S4-05',
    file: 'libs/client/src/tools/call-tool.ts',
    text: 'const request = parseOrThrow(requestSchema,',
    change:
      "if (!(await isKnown(context, name))) return toolFailure(options.callId ?? '', 'unknown-tool', `unknown tool: ${name}`);\n  const request = parseOrThrow(requestSchema,",
  },
  {
    row: 'S4-06',
    file: 'libs/client/src/tools/watch-tools.ts',
    text: '    yield* events;\n',
    change: '',
  },
  {
    row: 'S4-07',
    file: 'libs/client/src/tools/call-tool.ts',
    text: "return fail('unknown-tool', `unknown tool: ${name.slice(0, 200)}`);",
    change: 'throw new Error(`unknown tool: ${name}`);',
  },
  {
    row: 'S4-08',
    file: 'libs/client/src/tools/tools.ts',
    text: 'return callTool(this.#context, name, args, options);',
    change:
      'return callTool(this.#context, name, args, options).then((result) => {\n      if (!result.ok) throw new Error(result.error.message);\n      return result;\n    });',
  },
  {
    row: 'S4-09',
    file: 'libs/protocol/src/json-text.ts',
    text: '`${path} is ${describeType(value)}`',
    change: '`it is ${describeType(value)}`',
  },
  {
    row: 'S4-10',
    file: 'apps/worker/src/tools/run-call.ts',
    text: "toolError('timeout', `tool exceeded ${timeoutMs} ms`, { timeoutMs })",
    change: "toolError('timeout', 'tool exceeded its time')",
  },
  {
    row: 'S4-11',
    file: 'apps/worker/src/tools/child/describe-thrown.ts',
    text: "return `${thrown.name || 'Error'}: ${thrown.message}`;",
    change: 'return thrown.message;',
  },
  {
    row: 'S4-12',
    file: 'apps/worker/src/tools/run-call.ts',
    text: "toolError('died', 'subprocess exited without producing a result', { exitCode, signal })",
    change: "toolError('error', `tool failed (${exitCode ?? signal})`)",
  },
  {
    row: 'S4-13',
    file: 'apps/worker/src/tools/child/call-tool.ts',
    text: 'const returned = await tool.run(input.data, { signal });',
    change: 'const returned: unknown = tool.run(input.data, { signal });',
  },
  {
    row: 'S4-14',
    file: 'apps/worker/src/tools/child/answer-request.ts',
    text: "process.on('uncaughtException', (thrown) => report(raised(thrown)));\n",
    change: '',
  },
  {
    row: 'S4-15',
    file: 'apps/worker/src/tools/tool-process.ts',
    text: "signalGroup(process, 'SIGTERM');",
    change: "signalGroup(process, 'SIGKILL');",
  },
  {
    row: 'S4-16',
    file: 'apps/worker/src/tools/tool-host.ts',
    text: 'running.size < slots',
    change: 'running.size < 1',
  },
  {
    row: 'S4-17',
    file: 'apps/worker/src/tools/tool-process.ts',
    text: 'child.stdio[3] as Readable, options.outputBytes + REPORT_BYTES)',
    change: 'child.stdio[3] as Readable, Math.min(65_536, options.outputBytes + REPORT_BYTES))',
  },
  {
    row: 'S4-18',
    file: 'apps/worker/src/tools/tool-process.ts',
    text: 'await endStrays(mark, {',
    change: 'await endStrays(`${mark} `, {',
  },
  {
    row: 'S4-19',
    file: 'libs/protocol/src/json-text.ts',
    text: 'const copy = Object.create(null);',
    change: 'const copy: Record<string, unknown> = {};',
  },
  {
    row: 'S4-20',
    file: 'libs/client/src/tools/list-tools.ts',
    text: '[name, description].some(',
    change: '[name, description, query].some(',
  },
  {
    row: 'S4-21',
    file: 'libs/client/src/tools/wait-for-tool.ts',
    text: '({ callId, id }: ToolCallRef): string => callId ?? id;',
    change: '({ id }: ToolCallRef): string => id;',
  },
  {
    row: 'S4-22',
    file: 'apps/worker/src/tools/tool-host.ts',
    text: "call.stop.abort('cancelled' satisfies StopReason);",
    change: 'this.#wakeUps.notify();',
  },
];
