import { z } from 'zod';

/** Most bytes of a `tracestate` that is carried, as its specification advises. */
const STATE_CHARS = 512;

/**
 * Trace context of W3C, as it travels from a producer to a host. Other programs may have written it. A context that is
 * invalid is ignored, since tracing must not fail a command.
 */
export const traceContextSchema = z.object({
  traceparent: z.string().regex(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/),
  tracestate: z
    .string()
    .max(STATE_CHARS)
    .regex(/^[\x20-\x7e]*$/)
    .optional(),
});
export type TraceContext = z.infer<typeof traceContextSchema>;

/** The context of a message, which is dropped if it is invalid. */
export const carriedTraceSchema = traceContextSchema.optional().catch(undefined);

/** The parts of a span's context that are carried, in the form of OpenTelemetry's API. */
export interface CarriedSpan {
  traceId: string;
  spanId: string;
  traceFlags: number;
}

/** Returns the context of a span as W3C writes it. A `tracestate` that is too long is left out. */
export function toTraceContext({ traceId, spanId, traceFlags }: CarriedSpan, state = ''): TraceContext {
  const traceparent = `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`;
  return { traceparent, ...(state !== '' && state.length <= STATE_CHARS && { tracestate: state }) };
}

/** Returns the span that a context names. */
export function fromTraceContext({ traceparent }: TraceContext): CarriedSpan {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
}

/** Returns the variables by which a program finds the span that it belongs to. */
export function toTraceVariables({ traceparent, tracestate }: TraceContext): Record<string, string> {
  return { TRACEPARENT: traceparent, ...(tracestate !== undefined && { TRACESTATE: tracestate }) };
}

/** How a process exports its spans: by OTLP over HTTP. */
export interface TracingChoice {
  encoding: 'protobuf' | 'json';
}

/**
 * Reads whether the standard variables of OpenTelemetry ask for spans: an endpoint or the exporter `otlp`, unless the
 * SDK is disabled. Returns a sentence for settings that are not supported, and undefined when nothing is asked for.
 */
export function readTracingChoice(
  env: Readonly<Record<string, string | undefined>>,
): TracingChoice | string | undefined {
  if (env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true') return undefined;
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const exporter = env.OTEL_TRACES_EXPORTER?.trim() || (endpoint ? 'otlp' : 'none');
  if (exporter === 'none') return undefined;
  if (exporter !== 'otlp')
    return `OTEL_TRACES_EXPORTER=${exporter} is not supported, so nothing is traced: use otlp or none.`;
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/protobuf';
  if (protocol === 'http/protobuf') return { encoding: 'protobuf' };
  if (protocol === 'http/json') return { encoding: 'json' };
  return `The OTLP protocol ${protocol} is not supported, so nothing is traced: use http/protobuf or http/json.`;
}
