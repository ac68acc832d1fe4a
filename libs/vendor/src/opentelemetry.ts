import {
  type Attributes,
  context,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  getNumberFromEnv,
  getStringFromEnv,
  setGlobalErrorHandler,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';

export interface TracingOptions {
  encoding: 'protobuf' | 'json';
  /** Attributes of the resource, over which the variables of the environment have precedence. */
  resource: Record<string, string>;
  /** Receives each failure of an export, while the program continues. */
  onError(error: unknown): void;
}

/** The span of a whole program. */
export interface ProgramSpan {
  name: string;
  attributes: Attributes;
  /** Variables of the environment that name the span of the caller. */
  parent: { traceparent?: string | undefined; tracestate?: string | undefined };
}

export interface Tracing {
  /** Runs a program inside a span. `describe` returns the attributes of its end, and whether it failed. */
  during<T>(
    program: ProgramSpan,
    work: () => Promise<T>,
    describe: (end: T) => { attributes: Attributes; failed: boolean },
  ): Promise<T>;
  /** Exports what has ended, for at most `withinMs`. Never rejects. */
  end(withinMs: number): Promise<void>;
}

/** Lets the active context reach what is called in it, so that a process that does not trace passes traces on. */
export function carryContexts(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
}

/** Registers the SDK for this process, with the settings of the standard variables. */
export function startTracing({ encoding, resource, onError }: TracingOptions): Tracing {
  setGlobalErrorHandler(onError);
  carryContexts();
  const exporter = encoding === 'json' ? new JsonExporter() : new ProtobufExporter();
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(resource))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: readSampler(),
    spanLimits: {
      ...given('attributeCountLimit', 'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', 'OTEL_ATTRIBUTE_COUNT_LIMIT'),
      ...given(
        'attributeValueLengthLimit',
        'OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT',
        'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT',
      ),
      ...given('eventCountLimit', 'OTEL_SPAN_EVENT_COUNT_LIMIT'),
      ...given('linkCountLimit', 'OTEL_SPAN_LINK_COUNT_LIMIT'),
    },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        ...given('maxExportBatchSize', 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE'),
        ...given('maxQueueSize', 'OTEL_BSP_MAX_QUEUE_SIZE'),
        ...given('scheduledDelayMillis', 'OTEL_BSP_SCHEDULE_DELAY'),
        ...given('exportTimeoutMillis', 'OTEL_BSP_EXPORT_TIMEOUT'),
      }),
    ],
  });
  trace.setGlobalTracerProvider(provider);
  return {
    async during({ name, attributes, parent }, work, describe) {
      const above = new W3CTraceContextPropagator().extract(ROOT_CONTEXT, parent, defaultTextMapGetter);
      const span = provider.getTracer('shellfleet').startSpan(name, { attributes }, above);
      const end = await context.with(trace.setSpan(above, span), work);
      const ended = describe(end);
      span.setAttributes(ended.attributes);
      if (ended.failed) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
      return end;
    },
    async end(withinMs) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, withinMs);
      });
      await Promise.race([provider.shutdown().catch(onError), late]);
      clearTimeout(timer);
    },
  };
}

/** Returns an option with the number of the first variable that has one. */
function given<K extends string>(option: K, ...names: string[]): { [key in K]?: number } {
  for (const name of names) {
    const value = getNumberFromEnv(name);
    if (value !== undefined) return { [option]: value } as { [key in K]?: number };
  }
  return {};
}

/** Returns the sampler of `OTEL_TRACES_SAMPLER`. Without a valid value it is `parentbased_always_on`. */
function readSampler(): Sampler {
  const name = getStringFromEnv('OTEL_TRACES_SAMPLER') ?? '';
  const root = toSampler(name.replace(/^parentbased_/, ''));
  const isOfParent = name.startsWith('parentbased_') || root === undefined;
  return isOfParent ? new ParentBasedSampler({ root: root ?? new AlwaysOnSampler() }) : root;
}

function toSampler(name: string): Sampler | undefined {
  switch (name) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(getNumberFromEnv('OTEL_TRACES_SAMPLER_ARG') ?? 1);
    default:
      return undefined;
  }
}
