import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Span, trace } from '@opentelemetry/api';
import type { Session } from '@shellfleet/client';
import { startTracing, type Tracing } from '@shellfleet/vendor/opentelemetry';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { drawTrace, type ExportedSpan, type OtlpServer, startOtlpServer } from '../support/otlp-server.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { until } from '../support/until.ts';

// A worker, the command line and this program export their spans to one server.

const RULES = `rules:
  - { pattern: [files.mkdir, /workspace/asked], decision: prompt }
  - { pattern: [tool, mark], decision: prompt }
`;
const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };

let directory: string;
let server: OtlpServer;
let stack: TestFleet;
let cli: FleetCli;
let tracing: Tracing;
let env: Record<string, string>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-tracing-'));
  await writeFile(join(directory, 'rules.yaml'), RULES);
  await writeFile(join(directory, 'config.yaml'), JSON.stringify({ rules: [join(directory, 'rules.yaml')] }));
  server = await startOtlpServer();
  env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: server.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const settings = { SHELLFLEET_CONFIG: join(directory, 'config.yaml'), SHELLFLEET_TOOLS: toolModules('everyday') };
  stack = await startFleet({ env: { ...env, ...settings } });
  cli = new FleetCli(stack);
  const fail = (error: unknown) => {
    throw error;
  };
  tracing = startTracing({ encoding: 'json', resource: { 'service.name': 'caller' }, onError: fail });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await tracing?.end(5_000);
  await server?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
  vi.unstubAllEnvs();
});

/** Runs work in a span of this program. Returns what it returned, and its trace once that is complete. */
async function traced<T>(work: () => Promise<T>, isComplete: (names: string[]) => boolean) {
  const { span, done } = await trace.getTracer('caller').startActiveSpan('caller', async (of: Span) => {
    const result = await work();
    of.end();
    return { span: of.spanContext(), done: result };
  });
  const spans = await untilExported(span.traceId, (names) => names.includes('caller') && isComplete(names));
  return { done, spans, tree: drawTrace(spans, span.traceId), caller: span };
}

/** Returns the spans of a trace once they are complete, and no more have come for a while. */
async function untilExported(traceId: string, isComplete: (names: string[]) => boolean): Promise<ExportedSpan[]> {
  return until(
    () => server.spans.filter((span) => span.traceId === traceId),
    (spans) => isComplete(spans.map(({ name }) => name)),
    10_000,
  );
}

/** Tells whether a command's spans are complete: its host ends `process mailbox` last. */
const hasEnded = (names: string[]) => names.includes('process mailbox');

async function answerNext(kind: 'approve' | 'deny'): Promise<void> {
  const [question] = await until(
    () => stack.fleet.approvals.list(),
    (questions) => questions.length > 0,
    10_000,
  );
  await stack.fleet.approvals[kind](question?.id ?? '');
}

const named = (spans: readonly ExportedSpan[], name: string): ExportedSpan => {
  const span = spans.find((one) => one.name === name);
  if (span === undefined) throw new Error(`no span ${name}`);
  return span;
};

describe('a trace', () => {
  let session: Session;

  test('of a command leads from its caller over its opening to its Result', async () => {
    session = await stack.fleet.session('traced');
    const { done, spans, tree, caller } = await traced(
      () => session.run('echo $TRACEPARENT', { traceparent: true, env: { KEPT: 'planted-value' } }),
      hasEnded,
    );
    expect(tree).toBe(`caller INTERNAL
  send mailbox PRODUCER
    open session INTERNAL
      connect to keeper INTERNAL
      create sandbox INTERNAL
      prepare shell INTERNAL
      take from pool INTERNAL
    process mailbox CONSUMER
      run command INTERNAL
      store result INTERNAL
    receive inbox CLIENT
    wait in mailbox INTERNAL
      wait for opening INTERNAL
      wait for slot INTERNAL`);
    const run = named(spans, 'run command');
    expect(done.stdout).toBe(`00-${caller.traceId}-${run.spanId}-01\n`);
    expect(run.events).toEqual([{ name: 'first output' }]);
    expect(named(spans, 'process mailbox')).toMatchObject({
      attributes: {
        'messaging.system': 'shellfleet',
        'messaging.operation.name': 'process',
        'messaging.operation.type': 'process',
        'messaging.destination.name': 'mailbox',
        'messaging.message.conversation_id': 'traced',
        'shellfleet.session.id': 'traced',
        'shellfleet.command.id': done.commandId,
        'shellfleet.command.outcome': 'success',
        'shellfleet.entry.kind': 'command',
        'process.exit.code': 0,
        'host.id': 'h1',
      },
      resource: {
        'service.name': 'shellfleet-worker',
        'service.instance.id': 'h1',
        'deployment.environment.name': 'test',
      },
    });
    expect(named(spans, 'open session').attributes).toMatchObject({
      'shellfleet.session.start': expect.stringMatching(/^cold /),
      'container.id': expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const ends = (name: string) => BigInt(named(spans, name).endTimeUnixNano);
    expect(ends('receive inbox')).toBeGreaterThan(ends('run command'));
    expect(JSON.stringify(spans)).not.toMatch(/planted-value|echo/);
  });

  test('reaches no later command of its shell, and has the failure of a command', async () => {
    const { done, spans, tree } = await traced(() => session.run('echo "[$TRACEPARENT]"; exit 3'), hasEnded);
    expect(done.stdout).toBe('[]\n');
    expect(tree).toBe(`caller INTERNAL
  send mailbox PRODUCER
    process mailbox CONSUMER
      run command INTERNAL
      store result INTERNAL
    receive inbox CLIENT
    wait in mailbox INTERNAL`);
    expect(named(spans, 'run command')).toMatchObject({
      attributes: { 'process.exit.code': 3, 'error.type': 'failure' },
      status: { code: 2 },
    });
  });

  test('has the question about a command, whose answer has a trace of its own', async () => {
    const asks = await stack.fleet.session('asks', { approval: 'unless-trusted' });
    await asks.run('true');
    const { tree, spans } = await traced(async () => {
      const command = await asks.submit('touch approved');
      await trace.getTracer('caller').startActiveSpan('answers', { root: true }, async (span) => {
        await answerNext('approve');
        span.end();
      });
      return command.result();
    }, hasEnded);
    expect(tree).toBe(`caller INTERNAL
  send mailbox PRODUCER
    process mailbox CONSUMER
      run command INTERNAL
      store result INTERNAL
    receive inbox CLIENT
    wait in mailbox INTERNAL
      wait for approval INTERNAL`);
    const answer = await until(
      () => server.spans.find(({ name }) => name === 'answer approval'),
      (found) => found !== undefined,
    );
    expect(answer?.attributes).toMatchObject({ 'shellfleet.approval.answer': 'approve' });
    expect(named(spans, 'wait for approval').attributes['shellfleet.approval.id']).toBe(
      answer?.attributes['shellfleet.approval.id'],
    );
  });

  test('of a file operation leads to its host, and has the question about it', async () => {
    const { tree } = await traced(
      () => Promise.all([session.files.mkdir('/workspace/asked'), answerNext('approve')]),
      (names) => names.filter((name) => name === 'file mkdir').length === 4,
    );
    // The host is asked three times: whether it may be done, with the question, and after the answer.
    expect(tree).toBe(`caller INTERNAL
  answer approval CLIENT
  file mkdir CLIENT
    file mkdir SERVER
    file mkdir SERVER
    file mkdir SERVER
    wait for approval INTERNAL`);
  });

  test('of a tool call leads to its host, and has the question about it', async () => {
    const path = join(directory, 'mark');
    const { tree, spans, done } = await traced(
      () => Promise.all([stack.fleet.tools.call('mark', { path }), answerNext('approve')]),
      (names) => names.filter((name) => name === 'execute_tool mark').length === 2,
    );
    expect(tree).toBe(`caller INTERNAL
  answer approval CLIENT
  call tool CLIENT
    execute_tool mark INTERNAL
    execute_tool mark INTERNAL
    wait for approval INTERNAL`);
    expect(named(spans, 'execute_tool mark').attributes).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'mark',
      'gen_ai.tool.call.id': done[0].callId,
    });
  });

  test('of a call of the command line begins with the span that TRACEPARENT names', async () => {
    const TRACEPARENT = `00-${CALLER.traceId}-${CALLER.spanId}-01`;
    const run = await cli.text(['exec', '--traceparent', 'traced', '--', 'echo $TRACEPARENT'], {
      env: { ...env, TRACEPARENT },
    });
    const spans = await untilExported(CALLER.traceId, hasEnded);
    expect(drawTrace(spans, CALLER.traceId)).toBe(`shellfleet exec INTERNAL
  send mailbox PRODUCER
    process mailbox CONSUMER
      run command INTERNAL
      store result INTERNAL
    receive inbox CLIENT
    wait in mailbox INTERNAL`);
    expect(named(spans, 'shellfleet exec')).toMatchObject({
      parentSpanId: CALLER.spanId,
      attributes: { 'process.executable.name': 'shellfleet', 'process.exit.code': 0 },
      resource: { 'service.name': 'shellfleet' },
    });
    const { spanId } = named(spans, 'run command');
    expect(run).toEqual({ exitCode: 0, stdout: `00-${CALLER.traceId}-${spanId}-01\n`, stderr: '' });
  });
});

describe('the command line', () => {
  test('exports protobuf unless told otherwise, and nothing if the SDK is disabled', async () => {
    const { OTEL_EXPORTER_OTLP_ENDPOINT = '' } = env;
    const usual = { OTEL_EXPORTER_OTLP_ENDPOINT };
    await cli.text(['exec', 'traced', 'true'], { env: { ...usual, OTEL_SDK_DISABLED: 'true' } });
    expect(server.protobuf).toEqual([]);
    await cli.text(['exec', 'traced', 'true'], { env: usual });
    expect(server.protobuf[0]?.includes('shellfleet exec')).toBe(true);
  });

  test('ends in time, and writes no word, while the collector does not answer', async () => {
    await using silent = await startOtlpServer({ hangs: true });
    const began = performance.now();
    const run = await cli.text(['exec', 'traced', 'echo done'], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: silent.url } });
    expect(run).toEqual({ exitCode: 0, stdout: 'done\n', stderr: '' });
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});
