import { setTimeout as delay } from 'node:timers/promises';
import { isSpanContextValid, SpanKind, trace } from '@opentelemetry/api';
import { SPANS } from '@shellfleet/protocol';

// Measures what a submit does for tracing in a process without an SDK. Prints the least time of ten rounds.

const CALLS = 1_000_000;
const PRODUCER = { kind: SpanKind.PRODUCER } as const;
const tracer = trace.getTracer('@shellfleet/client');

let traced = 0;
const rounds: number[] = [];
for (let round = 0; round < 10; round++) {
  const began = performance.now();
  for (let call = 0; call < CALLS; call++)
    if (isSpanContextValid(tracer.startSpan(SPANS.send, PRODUCER).spanContext())) traced++;
  rounds.push(performance.now() - began);
  await delay(10);
}
const microseconds = (Math.min(...rounds) * 1_000) / CALLS;
console.log(`${microseconds.toFixed(2)} µs for the span of a submit; ${traced} of ${10 * CALLS} were traced`);
