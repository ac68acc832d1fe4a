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
  messagingSystem: 'messaging.system',
  messagingOperationName: 'messaging.operation.name',
  messagingOperationType: 'messaging.operation.type',
  messagingDestination: 'messaging.destination.name',
  conversationId: 'messaging.message.conversation_id',
} as const;

export const SPANS = { submit: 'send mailbox', run: 'run command' } as const;
