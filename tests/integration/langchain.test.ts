import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Command, interrupt, MemorySaver } from '@langchain/langgraph';
import type { Session, SessionEvent } from '@shellfleet/client';
import { DockerExecutionPolicy, type ShellToolMiddlewareOptions, shellToolMiddleware } from '@shellfleet/langchain';
import { AIMessage, type BaseMessage, createAgent, createMiddleware, fakeModel, ToolMessage } from 'langchain';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Agents of LangChain whose model is a script, with shells of a real fleet.

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

let stack: TestFleet;
let shared: string;
beforeAll(async () => {
  shared = await realpath(await mkdtemp(join(tmpdir(), 'sf-langchain-')));
  await chmod(shared, 0o777);
  stack = await startFleet({ slots: 20, env: { SHELLFLEET_WORKSPACES: shared } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(shared, { recursive: true, force: true });
});

type Call = { command: string } | { restart: true };
/** Calls of the model in each of its turns. Without a further turn it ends. */
type Turns = readonly (readonly Call[])[];

/** Returns a model that makes the calls of the turn that a conversation has reached. It serves several at once. */
function scripted(turnsOf: (conversation: BaseMessage[]) => Turns) {
  const model = fakeModel();
  for (let at = 0; at < 40; at += 1)
    model.respond((messages) => {
      const turn = messages.filter(AIMessage.isInstance).length;
      const calls = turnsOf(messages)[turn] ?? [];
      const toolCalls = calls.map((args, index) => ({ name: 'shell', args, id: `${turn}.${index}` }));
      return new AIMessage({ content: 'done', tool_calls: toolCalls });
    });
  return model;
}

/** Interrupts a run before each call whose command begins with `echo`. */
const asksBeforeEcho = createMiddleware({
  name: 'AsksBeforeEcho',
  wrapToolCall: (request, handler) => {
    if (String(request.toolCall.args.command).startsWith('echo')) interrupt('May it run?');
    return handler(request);
  },
});

const ask = (content = 'go') => ({ messages: [{ role: 'user', content }] });
const middleware = (options: Omit<ShellToolMiddlewareOptions, 'fleet'> = {}) =>
  shellToolMiddleware({ fleet: stack.fleet, ...options });
const toolMessages = ({ messages }: { messages: BaseMessage[] }) => messages.filter(ToolMessage.isInstance);
const textsOf = (state: { messages: BaseMessage[] }) => toolMessages(state).map(({ content }) => content);

const stateOf = async (id: string) => (await (await stack.fleet.attach(id))?.info())?.state;

async function closeAll(): Promise<void> {
  for await (const { id } of stack.fleet.sessions()) await (await stack.fleet.attach(id))?.close();
}

async function eventsUntil(session: Session, type: SessionEvent['type']): Promise<SessionEvent | undefined> {
  for await (const event of session.events()) if (event.type === type) return event;
  return undefined;
}

describe('an agent of LangChain', () => {
  // S1-37, S1-33, S1-52
  test('has one shell for all of its calls, between start-up and shutdown commands', async () => {
    const model = scripted(() => [
      [{ command: 'cd /tmp; name=shell' }],
      [{ command: 'sleep 0.2; echo "$greeting $name" >> order' }, { command: 'echo "in $PWD" >> order; cat order' }],
    ]);
    const shell = middleware({
      workspaceRoot: shared,
      startupCommands: 'greeting=hello',
      shutdownCommands: ['cat /tmp/order > /workspace/ended', 'echo bye >> /workspace/ended'],
      sessionId: () => 'whole',
    });
    const state = await createAgent({ model, middleware: [shell] }).invoke(ask());
    expect(
      toolMessages(state).map(({ tool_call_id, name, status, content }) => [tool_call_id, name, status, content]),
    ).toEqual([
      ['0.0', 'shell', 'success', '<no output>'],
      ['1.0', 'shell', 'success', '<no output>'],
      ['1.1', 'shell', 'success', 'hello shell\nin /tmp'],
    ]);
    expect(await readFile(join(shared, 'ended'), 'utf8')).toBe('hello shell\nin /tmp\nbye\n');
    expect(await stateOf('whole')).toBe('closed');
  });

  // S1-26, S1-43, S1-45, S1-46, S1-47, S1-48
  test("reads LangChain's texts for timeouts, blocked and cut output, exit codes and restarts", async () => {
    const model = scripted(() => [
      [{ command: 'echo part; sleep 60' }],
      [{ command: 'seq 5; exit 3' }],
      [{ command: 'at=@; echo "mail to ada${at}example.org"; exit 4' }],
      [{ restart: true }],
      [{ command: 'echo $prepared >&2' }],
    ]);
    const shell = middleware({
      executionPolicy: new DockerExecutionPolicy({ commandTimeoutMs: 1_500, maxOutputLines: 2 }),
      redactionRules: [{ piiType: 'email', strategy: 'block' }],
      startupCommands: ['prepared=again'],
    });
    const state = await createAgent({ model, middleware: [shell] }).invoke(ask());
    expect(toolMessages(state).map(({ status, content }) => [status, content])).toEqual([
      ['error', 'Error: Command timed out after 1.5 seconds.\n\npart'],
      [
        'error',
        expect.stringMatching(/^1\n2\n\n\.\.\. Output truncated at 2 lines \(observed 5\)\.\n\nExit code: 3(\n|$)/),
      ],
      ['error', expect.stringMatching(/^Output blocked: detected email\.(\n|$)/)],
      ['success', 'Shell session restarted.'],
      ['success', '[stderr] again'],
    ]);
    expect(toolMessages(state)[2]?.artifact).toMatchObject({ exit_code: 4, redaction_matches: { email: 1 } });
    expect(JSON.stringify(state)).not.toContain('ada@');
  });

  // S1-06, S1-38
  test('goes on in its shell after an interrupt, in another process and without stored resources', async () => {
    const checkpointer = new MemorySaver();
    const model = scripted(() => [[{ command: 'kept=yes' }], [{ command: 'echo "kept: $kept"' }]]);
    const config = { configurable: { thread_id: 'interrupted' } };
    const agentOn = (fleet: TestFleet['fleet']) =>
      createAgent({
        model,
        checkpointer,
        middleware: [shellToolMiddleware({ fleet }), asksBeforeEcho],
      });
    const interrupted = await agentOn(stack.fleet).invoke(ask(), config);
    expect(interrupted).toHaveProperty('__interrupt__');
    expect(interrupted).not.toHaveProperty('_shell_session_resources');
    const [open] = await Array.fromAsync(stack.fleet.sessions());
    expect(open?.id).toMatch(/^langchain-shell-[0-9a-f]{32}$/);
    expect(storedIn(checkpointer)).not.toContain(open?.id);
    const stored = await checkpointer.getTuple(config);
    expect(stored?.checkpoint.channel_values).toHaveProperty('_shell_session_resources', undefined);

    const elsewhere = await stack.connect();
    const resume = new Command({ resume: 'yes' });
    expect(textsOf(await agentOn(elsewhere).invoke(resume, config))).toEqual(['<no output>', 'kept: yes']);
    expect(await stateOf(open?.id as string)).toBe('closed');
    expect(storedIn(checkpointer)).not.toContain(open?.id);
  });

  test('runs a command once when its step is repeated after a crash', async () => {
    let isDown = true;
    // Fails after the tool, as if the process had ended before the checkpoint of the step was stored.
    const crash = createMiddleware({
      name: 'Crash',
      wrapToolCall: async (request, handler) => {
        const reply = await handler(request);
        if (isDown) throw new Error('The process ended.');
        return reply;
      },
    });
    const model = scripted(() => [[{ command: 'echo ran >> runs; cat runs' }]]);
    const agent = createAgent({ model, checkpointer: new MemorySaver(), middleware: [middleware(), crash] });
    const config = { configurable: { thread_id: 'crashed' } };
    await expect(agent.invoke(ask(), config)).rejects.toThrow('The process ended.');
    isDown = false;
    expect(textsOf(await agent.invoke(null, config))).toEqual(['ran']);
  });

  test('goes on in a session that its last run kept open', async () => {
    const model = scripted(() => [[{ command: 'count=1' }], [], [{ command: 'echo "count: $count"' }]]);
    const agent = createAgent({ model, checkpointer: new MemorySaver(), middleware: [middleware({ keepOpen: true })] });
    const config = { configurable: { thread_id: 'kept' } };
    await agent.invoke(ask(), config);
    expect(textsOf(await agent.invoke(ask('again'), config)).at(-1)).toBe('count: 1');
    await closeAll();
  });

  test('shares its shell with no other run of the same agent', async () => {
    const model = scripted(([question]) => [
      [{ command: `own=${question?.content}; touch $own` }],
      [{ command: 'echo $own; ls' }],
    ]);
    const agent = createAgent({ model, middleware: [middleware()] });
    const names = ['one', 'two', 'three'];
    const states = await Promise.all(names.map((name) => agent.invoke(ask(name))));
    expect(states.map((state) => textsOf(state)[1])).toEqual(names.map((name) => `${name}\n${name}`));
    expect(await Array.fromAsync(stack.fleet.sessions())).toEqual([]);
  });

  test('ends its command when the run is aborted', async () => {
    const aborting = new AbortController();
    const model = scripted(() => [[{ command: 'sleep 60' }]]);
    const shell = middleware({ sessionId: () => 'aborted' });
    const run = createAgent({ model, middleware: [shell] }).invoke(ask(), { signal: aborting.signal });
    const session = await stack.fleet.session('aborted', undefined);
    await eventsUntil(session, 'command.started');
    aborting.abort();
    await expect(run).rejects.toThrow(/abort/i);
    expect((await eventsUntil(session, 'command.completed'))?.data).toMatchObject({ outcome: 'cancellation' });
    await session.close();
  });

  // S1-05
  test('leaves no session when its run ends early', async () => {
    // The memory of a run is collected when the next one has begun.
    const failingRun = async () => {
      const model = fakeModel()
        .respondWithTools([{ name: 'shell', args: { command: 'true' } }])
        .respond(new Error('The model is not available.'));
      return createAgent({ model, middleware: [middleware()] })
        .invoke(ask())
        .catch((error: Error) => error.message);
    };
    expect(await failingRun()).toContain('not available');
    await failingRun();
    await until(
      () => {
        collectGarbage();
        return Array.fromAsync(stack.fleet.sessions());
      },
      (open) => open.length === 1,
    );
    await closeAll();
  });

  // S1-40, S1-41
  test('does not start when a start-up command fails, and leaves no session', async () => {
    const model = scripted(() => [[{ command: 'true' }]]);
    const shell = middleware({ startupCommands: ['true', 'echo missing >&2; exit 5'] });
    await expect(createAgent({ model, middleware: [shell] }).invoke(ask())).rejects.toThrow(
      "Startup command 'echo missing >&2; exit 5' failed with exit code 5. Its output: missing",
    );
    expect(model.callCount).toBe(0);
    expect(await Array.fromAsync(stack.fleet.sessions())).toEqual([]);
  });
});

/** Returns everything that the checkpointer holds, as text. */
function storedIn({ storage, writes }: MemorySaver): string {
  const toText = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString();
    if (Array.isArray(value)) return value.map(toText);
    if (typeof value !== 'object' || value === null) return value;
    return Object.entries(value).map(([key, own]) => [key, toText(own)]);
  };
  return JSON.stringify([storage, writes].map(toText));
}
