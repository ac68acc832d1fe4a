import {
  type Attributes,
  type Context,
  context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import {
  ATTRIBUTES,
  ensureShellfleetError,
  fromTraceContext,
  type TraceContext,
  toTraceContext,
} from '@shellfleet/protocol';

const tracer = trace.getTracer('@shellfleet/worker');

/** Starts a span below `parent`: a span of this process, the context that an entry or a call carries, or nothing. */
export function beginSpan(name: string, options: SpanOptions, parent: Span | TraceContext | undefined): Span {
  return tracer.startSpan(name, options, toContext(parent));
}

/** Returns the context of a span, for the variables of a command. */
export function contextOf(span: Span): TraceContext {
  const of = span.spanContext();
  return toTraceContext(of, of.traceState?.serialize());
}

/** Marks a span as failed. Messages are left out, since they may quote a script. */
export function fail(span: Span, errorType: string): Span {
  return span.setAttribute(ATTRIBUTES.errorType, errorType).setStatus({ code: SpanStatusCode.ERROR });
}

/** Runs work inside a span, which is the active one meanwhile. */
export async function runInSpan<T>(
  name: string,
  options: SpanOptions & { attributes: Attributes },
  parent: Span | TraceContext | undefined,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = beginSpan(name, options, parent);
  try {
    return await context.with(trace.setSpan(context.active(), span), () => work(span));
  } catch (error) {
    fail(span, ensureShellfleetError(error).code);
    throw error;
  } finally {
    span.end();
  }
}

function toContext(parent: Span | TraceContext | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  if ('spanContext' in parent) return trace.setSpan(ROOT_CONTEXT, parent);
  const { tracestate } = parent;
  return trace.setSpanContext(ROOT_CONTEXT, {
    ...fromTraceContext(parent),
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  });
}
