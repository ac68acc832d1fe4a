import { request } from 'node:http';
import {
  Client,
  type ClientOptions,
  type ElicitResult,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import type { Scope } from '@shellfleet/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { type Connecting, call, connectOverStdio, modern } from '../support/mcp-client.ts';
import type { CliProcess } from '../support/run-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// The MCP server as clients start it, with the official client.

let stage: TestFleet;
const opened: Client[] = [];

beforeAll(async () => {
  stage = await startFleet({ slots: 20 });
});
afterAll(async () => {
  await Promise.all(opened.map((client) => client.close()));
  await stage?.[Symbol.asyncDispose]();
});

/** Starts a server of the fleet, and connects to it until the end of the tests. */
async function connect(connecting: Connecting = {}): Promise<Client> {
  const client = await connectOverStdio(stage, connecting);
  opened.push(client);
  return client;
}

describe('the tools of the MCP server', () => {
  let client: Client;
  beforeAll(async () => {
    client = await connect();
  });

  test('have names, schemas and annotations, and instructions explain the sandbox', async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      ...['exec', 'poll', 'write_stdin', 'cancel', 'restart_session', 'session_info'],
      ...['read_file', 'write_file', 'list_files', 'list_tools', 'call_tool'],
    ]);
    for (const tool of tools)
      expect(tool, tool.name).toMatchObject({
        description: expect.any(String),
        inputSchema: { type: 'object' },
        outputSchema: { type: 'object' },
        annotations: { readOnlyHint: expect.any(Boolean) },
      });
    // S2-01
    expect(client.getInstructions()).toMatch(/escalate and a reason[\s\S]*Secrets are masked/);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual([
      'work_in_sandbox',
      'continue_command',
    ]);
    const prompt = await client.getPrompt({ name: 'work_in_sandbox', arguments: { task: 'Build it.' } });
    expect(JSON.stringify(prompt.messages)).toContain('Task: Build it.');
  });

  test('run commands in the session of the connection, which keeps its state', async () => {
    const first = await call(client, 'exec', { command: 'cd /tmp && export X=1; echo out; echo err >&2' });
    expect(first).toMatchObject({
      isError: false,
      text: expect.stringContaining('[stderr] err'),
      data: { status: 'ended', outcome: 'success', exit_code: 0, stdout: 'out\n', stderr: 'err\n', truncated: false },
    });
    const second = await call(client, 'exec', { command: 'echo "$X $PWD"; exit 3' });
    expect(second).toMatchObject({
      isError: false,
      text: '1 /tmp\n\nExit code: 3',
      data: { session: first.data.session, outcome: 'failure', exit_code: 3 },
    });
    const info = await call(client, 'session_info');
    expect(info.data).toMatchObject({ session: first.data.session, state: 'ready', epoch: 1, network: 'restricted' });
    const restarted = await call(client, 'restart_session');
    expect(restarted.data).toEqual({ session: first.data.session, epoch: 2 });
    expect((await call(client, 'exec', { command: 'echo "[$X]"' })).text).toContain('[]');
  });

  test('answer before a command ends, and poll returns only what came since', async () => {
    const started = await call(client, 'exec', {
      session: 'long',
      command: 'echo one; read line; echo "got $line"; exit 4',
      open_stdin: true,
      yield_ms: 300,
    });
    expect(started).toMatchObject({ isError: false, text: expect.stringContaining('Call poll with command_id') });
    const { command_id } = started.data;
    const running = await until(
      () => call(client, 'poll', { command_id, wait_ms: 0 }),
      ({ data }) => data.stdout !== '',
    );
    expect(running.data).toMatchObject({ status: 'running', stdout: 'one\n', next: expect.any(String) });
    const { next } = running.data;
    expect(running.text).toContain(`since: "${next}"`);
    const waiting = await call(client, 'exec', { session: 'long', command: 'true', yield_ms: 400 });
    expect(waiting.data).toMatchObject({
      status: 'queued',
      waits_for: `the end of ${command_id}, which runs in this session`,
    });
    const polled = call(client, 'poll', { command_id, since: next, wait_ms: 30_000 });
    const written = await call(client, 'write_stdin', { command_id, data: 'hello\n', end: true });
    expect(written.data).toEqual({ written_bytes: 6, ended: true });
    expect((await polled).data).toMatchObject({ status: 'ended', exit_code: 4, stdout: 'got hello\n' });
    expect((await call(client, 'poll', { command_id })).data).toMatchObject({ stdout: 'one\ngot hello\n' });
  });

  test('cut long output in the middle, also that of sessions with larger bounds', async () => {
    const { data, text } = await call(client, 'exec', { command: 'seq 1 100000' });
    expect(data).toMatchObject({
      truncated: true,
      stdout: expect.stringMatching(/^1\n2\n[\s\S]*omitted[\s\S]*\n100000\n$/),
    });
    expect(text.length).toBeLessThan(11_000);
    const session = await stage.fleet.session('wide');
    await session.run('true');
    const wide = await call(client, 'exec', { session: 'wide', command: 'seq 1 50000' });
    expect(wide.text).toMatch(/^1\n2\n[\s\S]*omitted[\s\S]*\n50000\n/);
    expect(JSON.stringify(wide.data).length).toBeLessThan(13_000);
  });

  test('cancel a command, by the tool and by the cancellation of its call', async () => {
    const { data } = await call(client, 'exec', { session: 'stop', command: 'sleep 60', yield_ms: 300 });
    expect((await call(client, 'cancel', { command_id: data.command_id })).data).toEqual({ cancelled: true });
    const ended = await call(client, 'poll', { command_id: data.command_id });
    expect(ended).toMatchObject({ isError: false, data: { outcome: 'cancellation' } });
    const giveUp = new AbortController();
    const messages: (string | undefined)[] = [];
    const onprogress = ({ message }: { message?: string }) => messages.push(message);
    const running = call(
      client,
      'exec',
      { session: 'stop', command: 'echo begun; sleep 60' },
      {
        ...{ signal: giveUp.signal, onprogress },
      },
    );
    await until(
      () => messages,
      (all) => all.some((message) => /^running for \d+ s, 6 bytes of output: begun$/.test(message ?? '')),
    );
    giveUp.abort();
    await expect(running).rejects.toThrow();
    const next = await call(client, 'exec', { session: 'stop', command: 'echo next' });
    expect(next.data).toMatchObject({ stdout: 'next\n' });
  });

  test('read, write and list files, and offer them as resources', async () => {
    const session = 'files';
    const bytes = Buffer.from([0, 1, 2, 255]).toString('base64');
    await call(client, 'write_file', { session, path: '/workspace/a b/text.txt', content: 'line é\n' });
    await call(client, 'write_file', { session, path: '/workspace/a b/bytes', content: bytes, encoding: 'base64' });
    expect(await call(client, 'read_file', { session, path: '/workspace/a b/text.txt' })).toMatchObject({
      text: 'line é\n',
      data: { encoding: 'utf8', size: 8 },
    });
    // The cut is inside a character, which the next part has.
    const cut = await call(client, 'read_file', { session, path: '/workspace/a b/text.txt', max_bytes: 6 });
    expect(cut.data).toMatchObject({ content: 'line ', next: 5 });
    const rest = await call(client, 'read_file', { session, path: '/workspace/a b/text.txt', offset: 5 });
    expect(rest.data).toMatchObject({ content: 'é\n' });
    const listed = await call(client, 'list_files', { session, path: '/workspace/a b' });
    expect(listed.data).toMatchObject({ total: 2, truncated: false, files: [{ name: 'bytes' }, { name: 'text.txt' }] });
    const read = async (path: string) => (await client.readResource({ uri: `shellfleet://files${path}` })).contents[0];
    expect(await read('/workspace/a%20b/text.txt')).toMatchObject({ mimeType: 'text/plain', text: 'line é\n' });
    expect(await read('/workspace/a%20b/bytes')).toMatchObject({ blob: bytes });
    await expect(read('/workspace/none')).rejects.toThrow('FILE_NOT_FOUND');
    await call(client, 'exec', { session, command: 'head -c 1100000 /dev/zero > big' });
    await expect(read('/workspace/big')).rejects.toThrow('FILE_TOO_LARGE');
  });

  test('say how much was written to a command that does not read on', async () => {
    const client = await connect({ args: ['--answer-within', '3s'] });
    const { data } = await call(client, 'exec', { command: 'sleep 9; wc -c', open_stdin: true, yield_ms: 500 });
    const text = 'é'.repeat(3_000_000);
    const { data: answer } = await call(client, 'write_stdin', { command_id: data.command_id, data: text, end: true });
    const written = answer.written_bytes as number;
    expect([written > 0, written < 6_000_000, written % 2, answer.ended]).toEqual([true, true, 0, false]);
    const rest = text.slice(written / 2, written / 2 + 10);
    const command = await stage.fleet.command(data.command_id as string);
    await command.write(rest);
    await command.closeStdin();
    expect((await command.result()).stdout).toBe(`${written + 20}\n`);
  });

  test('return failures of ours as results with our code', async () => {
    const codeOf = async (name: string, args: Record<string, unknown>) => (await call(client, name, args)).code;
    expect(await codeOf('exec', { command: 5 })).toBe('COMMAND_INVALID');
    expect(await codeOf('exec', { command: 'true', comand: 'x' })).toBe('COMMAND_INVALID');
    expect(await codeOf('exec', { command: 'true', session: 'a b' })).toBe('SESSION_SPEC_INVALID');
    expect(await codeOf('exec', { command: 'true', stdin: 'x', open_stdin: true })).toBe('COMMAND_INVALID');
    expect(await codeOf('poll', { command_id: 'x' })).toBe('COMMAND_INVALID');
    expect(await codeOf('poll', { command_id: 'none.01JZX0Y7R8QWERTY0123456789' })).toBe('RESULT_EXPIRED');
    expect(await codeOf('session_info', { session: 'never-opened' })).toBe('SESSION_NOT_FOUND');
    expect(await codeOf('read_file', { session: 'files', path: 'relative' })).toBe('PATH_INVALID');
    expect((await call(client, 'list_tools')).data).toEqual({ tools: [] });
    expect((await call(client, 'call_tool', { name: 'none' })).isError).toBe(true);
  });
});

describe('a connection over stdio', () => {
  test('starts in a second without a fleet, and calls say what is missing', async () => {
    const client = await connect({ env: { SHELLFLEET_REDIS_URL: '', SHELLFLEET_SEAL_KEY: '' } });
    const { code, text } = await call(client, 'exec', { command: 'true' });
    expect(code).toBe('QUEUE_UNAVAILABLE');
    expect(text).toContain('shellfleet up');
  });

  test('refuses invalid arguments of prompts and tools in words of ours', async () => {
    const client = await connect();
    const prompt = client.getPrompt({ name: 'continue_command', arguments: {} });
    await expect(prompt).rejects.toThrow(/continue_command: command_id: is missing; it must be a string$/);
    const { code, text } = await call(client, 'exec', { command: 5 });
    expect([code, text]).toEqual(['COMMAND_INVALID', expect.stringMatching(/command: must be a string$/)]);
  });

  test('replies to a line that is no message, logs one line, and goes on', async () => {
    const lines = ['no json', '5', '[]', '{"jsonrpc":"2.0","id":1,"method":"ping"}', ''];
    const server = new FleetCli(stage).start(['mcp'], { stdin: null });
    server.child.stdin?.write(lines.join('\n'));
    await until(server.output, ({ stdout }) => stdout.includes('"id":1'));
    server.child.stdin?.end();
    const { exitCode, stdout, stderr } = await server.end;
    const replies = String(stdout).trim().split('\n');
    expect(replies.map((line) => JSON.parse(line))).toMatchObject([
      { id: null, error: { code: -32_700 } },
      ...[1, 2].map(() => ({ id: null, error: { code: -32_600 } })),
      { id: 1, result: {} },
    ]);
    expect([exitCode, String(stderr).match(/^shellfleet: The client gets error -32\d00\. .+$/gm)?.length]).toEqual([
      0, 3,
    ]);
    expect(String(stderr).trim().split('\n')).toHaveLength(3);
  });

  test('has a session of its own, and shares one that it names', async () => {
    const [one, two] = await Promise.all([connect(), connect({ options: modern })]);
    const [a, b] = await Promise.all([one, two].map((client) => call(client, 'exec', { command: 'X=1' })));
    expect(a?.data.session).not.toBe(b?.data.session);
    await call(one, 'exec', { session: 'shared', command: 'Y=2' });
    expect((await call(two, 'exec', { session: 'shared', command: 'echo $Y' })).text).toBe('2');
  });

  test('refuses every further call when its key was revoked', async () => {
    const { key, id } = await stage.fleet.keys.create({ scopes: ['submit', 'read'] });
    const client = await connect({ env: { SHELLFLEET_API_KEY: key } });
    expect((await call(client, 'exec', { command: 'echo hi' })).text).toBe('hi');
    await stage.fleet.keys.revoke(id);
    await expect.poll(async () => (await call(client, 'exec', { command: 'true' })).code).toBe('UNAUTHORIZED');
  });

  test('leaves its commands running when it is lost', async () => {
    const client = await connect({ args: ['--session', 'left'] });
    const running = call(client, 'exec', { command: 'echo begun; read line; echo "read $line"', open_stdin: true });
    running.catch(() => {});
    const { runningCommandId = '' } = await until(
      async () => (await stage.fleet.attach('left'))?.info().catch(() => undefined),
      (info) => info?.runningCommandId !== undefined,
    ).then((info) => info!);
    await client.close();
    const command = await stage.fleet.command(runningCommandId);
    await command.write('on\n');
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'begun\nread on\n' });
  });
});

describe('the person at the client', () => {
  const command = 'touch /workspace/made && echo made';
  const approves: ElicitResult = { action: 'accept', content: { answer: 'approve this command' } };
  const denies: ElicitResult = { action: 'accept', content: { answer: 'deny' } };
  const clients = new Map<string, Client>();
  let answers: ElicitResult[] = [];
  let shown: string[] = [];
  const connectAs = async (scopes: Scope[], options: ClientOptions) => {
    const { key } = await stage.fleet.keys.create({ name: 'model', scopes });
    const env = { SHELLFLEET_API_KEY: key };
    const asking = { ...options, capabilities: { elicitation: {} } };
    const client = await connect({ args: ['--approval', 'unless-trusted'], env, options: asking });
    client.setRequestHandler('elicitation/create', ({ params }) => {
      shown.push(params.message);
      return answers.shift() ?? { action: 'cancel' };
    });
    return client;
  };
  const clientOf = (mode: string) => clients.get(mode) as Client;

  beforeAll(async () => {
    await stage.fleet.applyConfiguration({ approvals: { self: true } });
    const scopes: Scope[] = ['submit', 'read', 'approve'];
    const connecting = Object.entries({ legacy: {}, modern }).map(async ([mode, options]) =>
      clients.set(mode, await connectAs(scopes, options)),
    );
    await Promise.all(connecting);
  });
  beforeEach(() => {
    shown = [];
  });

  test.each(['legacy', 'modern'])('approves and denies commands, with a %s client', async (mode) => {
    answers = [approves, denies, { action: 'decline' }];
    const run = () => call(clientOf(mode), 'exec', { command });
    expect((await run()).data).toMatchObject({ outcome: 'success', stdout: 'made\n' });
    expect(await run()).toMatchObject({ isError: true, data: { outcome: 'denial' } });
    expect((await run()).data).toMatchObject({ outcome: 'denial' });
    expect(shown).toHaveLength(3);
    expect(shown[0]).toMatch(/read the script\.[\s\S]*touch \/workspace\/made/);
  });

  test('who does not answer leaves the question to others, and a later poll asks again', async () => {
    answers = [{ action: 'cancel' }, approves];
    const waiting = await call(clientOf('legacy'), 'exec', { command, yield_ms: 1_500 });
    expect(waiting.data).toMatchObject({ status: 'waiting for approval', question: expect.any(String) });
    expect(waiting.text).toContain(`shellfleet approvals approve ${waiting.data.question}`);
    const polled = await call(clientOf('legacy'), 'poll', { command_id: waiting.data.command_id, wait_ms: 20_000 });
    expect(polled.data).toMatchObject({ outcome: 'success' });
  });

  // S3-26
  test('is not asked without the scope, or where session or fleet forbid it', async () => {
    const approval = { reject: { mcpElicitations: true } };
    await stage.fleet.session('rejects', { approval, execPolicy: [{ pattern: ['date'], decision: 'prompt' }] });
    const submitter = await connectAs(['submit', 'read'], {});
    const textOf = async (client: Client, session: string, script: string) =>
      (await call(client, 'exec', { session, command: script, yield_ms: 600 })).text;
    const [unable, rejected] = await Promise.all([
      textOf(submitter, 'unable', command),
      textOf(clientOf('legacy'), 'rejects', 'date'),
    ]);
    expect(unable).toContain('The key of this MCP server may not answer');
    expect(rejected).toContain('does not let the person at a client answer');
    await stage.fleet.applyConfiguration({});
    expect(await textOf(clientOf('legacy'), 'strict', command)).toContain('lets nobody answer what they submitted');
    expect(shown).toEqual([]);
    await stage.fleet.applyConfiguration({ approvals: { self: true } });
  });
});

describe('a server for HTTP', () => {
  let url: URL;
  let server: CliProcess;
  const keyWith = async (...scopes: Scope[]) => (await stage.fleet.keys.create({ name: 'http', scopes })).key;
  const connectWith = async (key: string, options: ClientOptions = {}) => {
    const client = new Client({ name: 'test', version: '1.0.0' }, options);
    const requestInit = { headers: { authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    opened.push(client);
    return client;
  };
  beforeAll(async () => {
    server = new FleetCli(stage).start(['mcp', '--http', '--port', '0', '--approval', 'unless-trusted'], {
      stdin: null,
    });
    const listening = /MCP is served at (http:\S+)\./;
    const { stderr } = await until(server.output, ({ stderr }) => listening.test(stderr));
    url = new URL(listening.exec(stderr)?.[1] ?? '');
  });
  afterAll(async () => {
    server?.child.kill('SIGTERM');
    expect((await server?.end)?.exitCode).toBe(0);
  });

  test.each(['legacy', 'modern'])('serves a %s client, which names its sessions', async (mode) => {
    const client = await connectWith(await keyWith('submit', 'read'), mode === 'modern' ? modern : {});
    expect((await call(client, 'exec', { command: 'true' })).code).toBe('COMMAND_INVALID');
    const messages: (string | undefined)[] = [];
    const onprogress = ({ message }: { message?: string }) => messages.push(message);
    // The session is open with another spec than that of the server.
    const { id: session } = await stage.fleet.session(`http-${mode}`);
    const slow = await call(client, 'exec', { session, command: 'sleep 0.6; pwd' }, { onprogress });
    expect(slow.data).toMatchObject({ stdout: '/workspace\n' });
    expect(messages.join()).toMatch(/^(queued|running) for/);
    expect((await client.readResource({ uri: `shellfleet://http-${mode}/etc/hostname` })).contents).toHaveLength(1);
  });

  test('asks the person of a client that repeats its call', async () => {
    const options = { ...modern, capabilities: { elicitation: {} } };
    const client = await connectWith(await keyWith('submit', 'read', 'approve'), options);
    client.setRequestHandler('elicitation/create', () => ({
      ...{ action: 'accept' as const, content: { answer: 'approve this command' } },
    }));
    const answer = await call(client, 'exec', { session: 'asked', command: 'touch /workspace/x && echo done' });
    expect(answer.data).toMatchObject({ outcome: 'success', stdout: 'done\n' });
  });

  test('reads no command that a call of a key without the scope claims to repeat', async () => {
    const { commandId } = await stage.fleet.run('echo theirs');
    const version = '2026-07-28';
    const name = 'exec';
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': version,
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const repeatWith = async (...scopes: Scope[]) => {
      const params = { name, arguments: { session: 'mine', command: 'true' }, requestState: commandId, _meta };
      const headers = {
        ...{ authorization: `Bearer ${await keyWith(...scopes)}`, 'content-type': 'application/json' },
        ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': version },
        ...{ 'mcp-method': 'tools/call', 'mcp-name': name },
      };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      return (await fetch(url, { method: 'POST', headers, body })).text();
    };
    expect(await repeatWith('submit', 'read')).toContain('theirs');
    const refused = await repeatWith('submit');
    expect(refused).toContain('lacks the scope read');
    expect(refused).not.toContain('theirs');
  });

  test('refuses requests without a key, with a revoked one, of other hosts and of pages', async () => {
    const key = await keyWith('read');
    const statusOf = async (headers: Record<string, string>, path = '/mcp') =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = request(new URL(path, url), { method: 'POST', headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        sent.on('error', reject).end('{}');
      });
    const authorization = `Bearer ${key}`;
    const json = { authorization, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    expect(await statusOf(json)).toBe(400);
    expect(await statusOf({})).toBe(401);
    expect(await statusOf({ authorization: `Bearer ${key.slice(0, -1)}` })).toBe(401);
    expect(await statusOf({ ...json, host: 'evil.example' })).toBe(421);
    expect(await statusOf({ ...json, origin: 'https://evil.example' })).toBe(403);
    expect(await statusOf(json, '/other')).toBe(404);
    const client = await connectWith(key);
    expect((await call(client, 'exec', { session: 'x', command: 'true' })).code).toBe('UNAUTHORIZED');
    await stage.fleet.keys.revoke(key.split('_')[1] ?? '');
    await until(
      () => statusOf(json),
      (status) => status === 401,
      2_000,
    );
  });

  test('does not listen on other addresses without TLS', async () => {
    const { exitCode, stderr } = await new FleetCli(stage).run(['mcp', '--http', '--host', '0.0.0.0', '--port', '0']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining('--insecure-http') });
  });
});
