import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { ATTRIBUTES, ensureShellfleetError, type TraceContext, toTraceContext } from '@shellfleet/protocol';

const tracer = trace.getTracer('@shellfleet/client');

/** Starts a span. Returns undefined in a process that does not trace, which makes no attributes then. */
export function startSpan(name: string, options: SpanOptions, parent: Context = context.active()): Span | undefined {
  const span = tracer.startSpan(name, options, parent);
  return isSpanContextValid(span.spanContext()) ? span : undefined;
}

/** Returns the context of a span as it travels to a host. */
export function carry(span: Span | undefined): TraceContext | undefined {
  if (span === undefined) return undefined;
  const of = span.spanContext();
  return toTraceContext(of, of.traceState?.serialize());
}

/** Returns the context of the active span as it travels to a host, if a span is active. */
export function carryActive(): TraceContext | undefined {
  return carry(trace.getActiveSpan());
}

/** Ends a span that failed. The message of the error is left out, since it may quote a script. */
export function endFailed(span: Span, error: unknown): void {
  span.setAttribute(ATTRIBUTES.errorType, ensureShellfleetError(error).code);
  span.setStatus({ code: SpanStatusCode.ERROR }).end();
}

/** Runs work inside a span, if this process traces. */
export async function inSpan<T>(
  name: string,
  options: SpanOptions,
  attributes: () => Attributes,
  work: (span?: Span) => Promise<T>,
): Promise<T> {
  const span = startSpan(name, options);
  if (span === undefined) return work();
  span.setAttributes(attributes());
  try {
    const done = await context.with(trace.setSpan(context.active(), span), () => work(span));
    span.end();
    return done;
  } catch (error) {
    endFailed(span, error);
    throw error;
  }
}

/** A span that lasts as long as something is true, perhaps several times. */
export class SpanWhile implements Disposable {
  readonly #name: string;
  #span: Span | undefined;
  #isOpen = false;

  constructor(name: string) {
    this.#name = name;
  }

  set(isOpen: boolean): void {
    if (isOpen === this.#isOpen) return;
    this.#isOpen = isOpen;
    if (isOpen) this.#span = startSpan(this.#name, {});
    else this.#span?.end();
  }

  [Symbol.dispose](): void {
    this.set(false);
  }
}
