import { trace } from '@opentelemetry/api';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FakeSandbox } from '../../test-support/fake-sandbox.ts';
import { open, outcomes, serve } from '../../test-support/session-stage.ts';
import { MissingImage } from '../sandbox/sandbox.ts';

vi.mock('@shellfleet/mailbox', async (original) =>
  (await import('../../test-support/staged-mailbox.ts')).inMemory(await original<object>()),
);
vi.mock('../shell/connect-shell.ts', () => ({
  connectShell: async (sandbox: FakeSandbox) => sandbox.keeper.connect(),
}));

const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
// Other files of this process do not trace.
afterAll(() => trace.disable());
beforeEach(() => exporter.reset());

const TRACES = ['a', 'b'].map((digit) => digit.repeat(32));
const carriedIn = (traceId = '') => ({ traceparent: `00-${traceId}-${'1'.repeat(16)}-01` });

/** Returns the names of the ended spans of a trace, in the order of their ends. */
const namesIn = (traceId = '') => spansIn(traceId).map(({ name }) => name);
const spansIn = (traceId = '') => exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId);

describe('a session on a host that traces', () => {
  test('opens its shell, and pulls its image, in the trace of the first waiting command', async () => {
    const it = open({}, { isTracing: true });
    vi.spyOn(it.sandboxes, 'create').mockRejectedValueOnce(new MissingImage('busybox:latest'));
    it.mailbox.submit({ id: 'a', script: 'true', trace: carriedIn(TRACES[0]) });
    it.mailbox.submit({ id: 'b', script: 'true', trace: carriedIn(TRACES[1]) });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
    expect(namesIn(TRACES[0]).filter((name) => !name.startsWith('wait'))).toEqual([
      'take from pool',
      'create sandbox',
      'pull image',
      'create sandbox',
      'connect to keeper',
      'prepare shell',
      'open session',
      'run command',
      'store result',
      'process mailbox',
    ]);
    expect(namesIn(TRACES[1]).filter((name) => !name.startsWith('wait'))).toEqual([
      'run command',
      'store result',
      'process mailbox',
    ]);
  });

  test('links the wait of a command to the opening in the trace of another one', async () => {
    const it = open({ startupCommands: ['hold on'] }, { isTracing: true });
    it.mailbox.startedAt = 60_000;
    it.mailbox.submit({ id: 'a', script: 'true', trace: carriedIn(TRACES[0]) });
    it.mailbox.submit({ id: 'b', script: 'true', trace: carriedIn(TRACES[1]) });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun.length).toBe(2);
    it.keeper().end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
    const opened = spansIn(TRACES[0]).find(({ name }) => name === 'open session');
    const linksOf = (traceId = '') =>
      spansIn(traceId)
        .filter(({ name }) => name === 'wait for opening')
        .map(({ links }) => links.map(({ context }) => context.spanId));
    expect([linksOf(TRACES[0]), linksOf(TRACES[1])]).toEqual([[[]], [[opened?.spanContext().spanId]]]);
  });

  test('marks what failed with its error, and has no run without a shell', async () => {
    const it = open({}, { isTracing: true });
    vi.spyOn(it.sandboxes, 'create').mockRejectedValue(new Error('no sandbox'));
    it.mailbox.submit({ id: 'a', script: 'true', trace: carriedIn(TRACES[0]) });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a error']);
    const failures = () =>
      spansIn(TRACES[0])
        .filter(({ status }) => status.code === 2)
        .map(({ name, status, attributes }) => [name, attributes['error.type'], status.message]);
    await expect.poll(failures).toEqual([
      ['create sandbox', 'INTERNAL', undefined],
      ['process mailbox', 'INTERNAL', undefined],
      ['open session', 'SESSION_START_FAILED', undefined],
    ]);
    expect(namesIn(TRACES[0])).not.toContain('run command');
  });

  test('ignores a context that is no trace, and begins another one', async () => {
    const it = open({}, { isTracing: true });
    it.mailbox.submit({ id: 'a', script: 'true', trace: { traceparent: 'x'.repeat(100_000) } });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    const run = exporter.getFinishedSpans().find(({ name }) => name === 'process mailbox');
    expect(run?.parentSpanContext).toBeUndefined();
  });
});

describe('a command that asks for its span', () => {
  test.each([
    ['gets that of its run', true],
    ['gets that of its submitter on a host that does not trace', false],
  ])('%s', async (_what, isTracing) => {
    const it = open({}, { isTracing });
    it.mailbox.submit({ id: 'a', script: 'true', traceparent: true, trace: carriedIn(TRACES[0]) });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    const run = spansIn(TRACES[0]).find(({ name }) => name === 'run command');
    const spanId = isTracing ? run?.spanContext().spanId : '1'.repeat(16);
    expect(it.keeper().env).toEqual({ TRACEPARENT: `00-${TRACES[0]}-${spanId}-01` });
  });
});
