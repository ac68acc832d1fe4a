import { describe, expect, test } from 'vitest';
import {
  carriedTraceSchema,
  fromTraceContext,
  readTracingChoice,
  toTraceContext,
  toTraceVariables,
} from './trace-context.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${spanId}-01`;

describe('a carried trace', () => {
  test('names a span as W3C does, and is read back', () => {
    const carried = toTraceContext({ traceId, spanId, traceFlags: 1 }, 'vendor=value');
    expect(carried).toEqual({ traceparent, tracestate: 'vendor=value' });
    expect(carriedTraceSchema.parse(carried)).toEqual(carried);
    expect(fromTraceContext(carried)).toEqual({ traceId, spanId, traceFlags: 1 });
    expect(toTraceVariables(carried)).toEqual({ TRACEPARENT: traceparent, TRACESTATE: 'vendor=value' });
  });

  test('leaves out a state that is empty or too long', () => {
    expect(toTraceContext({ traceId, spanId, traceFlags: 0 })).toEqual({
      traceparent: `00-${traceId}-${spanId}-00`,
    });
    expect(toTraceContext({ traceId, spanId, traceFlags: 1 }, 'a'.repeat(513))).toEqual({ traceparent });
  });

  test.each([
    ['another version', { traceparent: `01-${traceId}-${spanId}-01` }],
    ['no trace', { traceparent: `00-${'0'.repeat(32)}-${spanId}-01` }],
    ['no span', { traceparent: `00-${traceId}-${'0'.repeat(16)}-01` }],
    ['capitals', { traceparent: traceparent.toUpperCase() }],
    ['more text', { traceparent: `${traceparent}\n` }],
    ['a long state', { traceparent, tracestate: 'a'.repeat(513) }],
    ['a state of two lines', { traceparent, tracestate: 'a=b\nc=d' }],
    ['no object', traceparent],
    ['null', null],
  ])('is dropped, and fails nothing, if another program wrote %s', (_what, carried) => {
    expect(carriedTraceSchema.parse(carried)).toBeUndefined();
  });
});

describe('the variables of OpenTelemetry', () => {
  const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://127.0.0.1:4318';
  test.each([
    ['nothing is set', {}, undefined],
    ['an endpoint is set', { OTEL_EXPORTER_OTLP_ENDPOINT }, { encoding: 'protobuf' }],
    ['an endpoint of traces is set', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c/x' }, { encoding: 'protobuf' }],
    ['the exporter is otlp', { OTEL_TRACES_EXPORTER: 'otlp' }, { encoding: 'protobuf' }],
    ['the exporter is none', { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }, undefined],
    ['the SDK is disabled', { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }, undefined],
    [
      'the protocol is JSON',
      { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
      { encoding: 'json' },
    ],
    [
      'the protocol of traces differs',
      {
        OTEL_EXPORTER_OTLP_ENDPOINT,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
      },
      { encoding: 'protobuf' },
    ],
  ])('choose whether and how spans are exported: %s', (_what, env, choice) => {
    expect(readTracingChoice(env)).toEqual(choice);
  });

  test('are named in a sentence where they are not supported', () => {
    expect([
      readTracingChoice({ OTEL_TRACES_EXPORTER: 'zipkin' }),
      readTracingChoice({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }),
    ]).toEqual([
      'OTEL_TRACES_EXPORTER=zipkin is not supported, so nothing is traced: use otlp or none.',
      'The OTLP protocol grpc is not supported, so nothing is traced: use http/protobuf or http/json.',
    ]);
  });
});
