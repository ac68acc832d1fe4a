import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiCaller } from '../support/api/api-caller.ts';
import { type ApiProcess, startApiProcess } from '../support/api/api-process.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// Terminals over WebSockets, with the client that browsers have.

let stack: TestFleet;
let server: ApiProcess;
let api: ApiCaller;
beforeAll(async () => {
  stack = await startFleet();
  server = await startApiProcess(stack);
  api = new ApiCaller(server.url, (await createKey('submit')).key);
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
});

const createKey = (scope: 'submit' | 'read') => stack.fleet.keys.create({ name: 'test', scopes: [scope] });
const V1 = 'shellfleet.terminal.v1';

/** Opens a terminal, and collects what the server sends. */
function connect(key = api.key, path = '/sessions/seen/terminal?columns=90&rows=30') {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1${path}`, [V1, `shellfleet.bearer.${key}`]);
  socket.binaryType = 'arraybuffer';
  const texts: unknown[] = [];
  let output = '';
  socket.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') texts.push(JSON.parse(data));
    else output += Buffer.from(data as ArrayBuffer).toString();
  });
  const opened = new Promise<boolean>((resolve) => {
    socket.addEventListener('open', () => resolve(true));
    socket.addEventListener('error', () => resolve(false));
  });
  const closed = new Promise<{ code: number }>((resolve) => socket.addEventListener('close', resolve));
  const shows = (text: string) => expect.poll(() => output, { timeout: 20_000 }).toContain(text);
  return { socket, texts, opened, closed, shows, type: (text: string) => socket.send(Buffer.from(text)) };
}

describe('a terminal over a WebSocket', () => {
  test('has its size, takes bytes and sizes, and reports its end', async () => {
    const terminal = connect();
    expect(await terminal.opened).toBe(true);
    expect(terminal.socket.protocol).toBe(V1);
    // What is typed before the shell is open is not lost.
    terminal.type('stty size; printf "\\303\\251-%s\\n" here\n');
    await terminal.shows('30 90');
    await terminal.shows('é-here');
    terminal.socket.send(JSON.stringify({ resize: { columns: 100, rows: 40 } }));
    terminal.type('stty size; exit 3\n');
    await terminal.shows('40 100');
    expect((await terminal.closed).code).toBe(1000);
    expect(terminal.texts).toEqual([{ ended: { reason: 'exited', exitCode: 3, signal: null } }]);
  });

  test.each(['not JSON', '{"resize":{"columns":0,"rows":1}}', '{"other":1}'])(
    'is closed for the text %s',
    async (text) => {
      const terminal = connect();
      await terminal.opened;
      terminal.socket.send(text);
      expect((await terminal.closed).code).toBe(1007);
    },
  );

  test('ends at the word of its client', async () => {
    const terminal = connect();
    await terminal.opened;
    terminal.socket.send('{"end":true}');
    expect((await terminal.closed).code).toBe(1000);
  });

  test('is refused without a key that may submit, and without a WebSocket', async () => {
    expect(await connect('sfk_0').opened).toBe(false);
    expect(await connect((await createKey('read')).key).opened).toBe(false);
    expect(await connect(api.key, '/sessions/seen/terminal?rows=0').opened).toBe(false);
    expect(await api.call('GET', '/sessions/seen/terminal')).toMatchObject({
      status: 426,
      json: { code: 'COMMAND_INVALID' },
    });
  });

  test('ends within a second after its key is revoked', async () => {
    const { id, key } = await createKey('submit');
    const terminal = connect(key);
    await terminal.opened;
    terminal.type('echo up-$((1+1))\n');
    await terminal.shows('up-2');
    const revokedAt = performance.now();
    await stack.fleet.keys.revoke(id);
    expect((await terminal.closed).code).toBe(1008);
    expect(performance.now() - revokedAt).toBeLessThan(1_000);
  });

  test('is told to connect again when the server stops', async () => {
    const terminal = connect();
    await terminal.opened;
    terminal.type('echo up-$((1+1))\n');
    await terminal.shows('up-2');
    const stopped = server.stop('SIGTERM');
    expect((await terminal.closed).code).toBe(1012);
    expect(await stopped).toBe(0);
  });
});
