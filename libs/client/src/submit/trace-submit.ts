import { SpanKind, trace } from '@opentelemetry/api';
import { ATTRIBUTES, ensureShellfleetError, SPANS } from '@shellfleet/protocol';

const tracer = trace.getTracer('@shellfleet/client');

/** A span around a submit, from the call to the reply of Redis. Does nothing without a tracer. */
export async function traceSubmit<T>(sessionId: string, commandId: string, submit: () => Promise<T>): Promise<T> {
  const span = tracer.startSpan(SPANS.submit, {
    kind: SpanKind.PRODUCER,
    attributes: {
      [ATTRIBUTES.messagingSystem]: 'bullmq',
      [ATTRIBUTES.messagingOperationName]: 'send',
      [ATTRIBUTES.messagingOperationType]: 'send',
      [ATTRIBUTES.messagingDestination]: 'mailbox',
      [ATTRIBUTES.conversationId]: sessionId,
      [ATTRIBUTES.sessionId]: sessionId,
      [ATTRIBUTES.commandId]: commandId,
    },
  });
  try {
    return await submit();
  } catch (error) {
    const known = ensureShellfleetError(error);
    span.setAttribute(ATTRIBUTES.errorType, known.code);
    throw known;
  } finally {
    span.end();
  }
}
