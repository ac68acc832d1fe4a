import type { Wait } from './wire-receipt.ts';

/** Names that logs, spans and metrics share. */
export const ATTRIBUTES = {
  tenant: 'shellfleet.tenant.id',
  sessionId: 'shellfleet.session.id',
  commandId: 'shellfleet.command.id',
  outcome: 'shellfleet.command.outcome',
  fence: 'shellfleet.lease.fence',
  hostId: 'host.id',
  errorType: 'error.type',
  exitCode: 'process.exit.code',
  outputBytes: 'shellfleet.output.bytes',
  toolName: 'shellfleet.tool.name',
  toolCall: 'shellfleet.tool.call',
  outputRedactions: 'shellfleet.output.redactions',
  containerId: 'container.id',
  imageName: 'container.image.name',
  sessionStart: 'shellfleet.session.start',
  fileOperation: 'shellfleet.file.operation',
  entryKind: 'shellfleet.entry.kind',
  toolOperation: 'gen_ai.operation.name',
  genAiToolName: 'gen_ai.tool.name',
  genAiToolCall: 'gen_ai.tool.call.id',
  approvalId: 'shellfleet.approval.id',
  approvalAnswer: 'shellfleet.approval.answer',
  executable: 'process.executable.name',
  messagingSystem: 'messaging.system',
  messagingOperationName: 'messaging.operation.name',
  messagingOperationType: 'messaging.operation.type',
  messagingDestination: 'messaging.destination.name',
  conversationId: 'messaging.message.conversation_id',
} as const;

/** Names of spans. A name ends with a value where it has braces. */
export const SPANS = {
  verb: 'shellfleet {verb}',
  send: 'send mailbox',
  receive: 'receive inbox',
  wait: 'wait in mailbox',
  process: 'process mailbox',
  run: 'run {kind}',
  store: 'store result',
  open: 'open session',
  takeWarm: 'take from pool',
  pullImage: 'pull image',
  createSandbox: 'create sandbox',
  connectKeeper: 'connect to keeper',
  prepareShell: 'prepare shell',
  file: 'file {operation}',
  callTool: 'call tool',
  tool: 'execute_tool {tool}',
  approval: 'wait for approval',
  answer: 'answer approval',
} as const;

/** Names of the spans inside `wait in mailbox`, by what an entry waited for. */
export const WAIT_SPANS: Record<Exclude<Wait, 'waiting'>, string> = {
  slot: 'wait for slot',
  earlier: 'wait for earlier commands',
  approval: SPANS.approval,
  image: 'wait for image',
  opening: 'wait for opening',
  attempt: 'wait for first attempt',
};

/** Returns the name of a span that ends with a value. */
export function nameSpan(template: string, value: string): string {
  return template.replace(/\{\w+\}$/, () => value);
}
