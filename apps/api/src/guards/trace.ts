import { type Context, createTraceState, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { fromTraceContext, traceContextSchema } from '@shellfleet/protocol';
import type { FastifyRequest } from 'fastify';

/** Returns the trace context that a request carries. Without a valid one, returns an empty context. */
export function traceContextOf({ headers }: Pick<FastifyRequest, 'headers'>): Context {
  const { traceparent, tracestate } = headers;
  const carried = traceContextSchema.safeParse({ traceparent, tracestate }).data;
  if (carried === undefined) return ROOT_CONTEXT;
  const traceState = carried.tracestate === undefined ? {} : { traceState: createTraceState(carried.tracestate) };
  return trace.setSpanContext(ROOT_CONTEXT, { ...fromTraceContext(carried), ...traceState, isRemote: true });
}
