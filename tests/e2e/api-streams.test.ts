import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiCaller, outputOf, type ReceivedEvent } from '../support/api/api-caller.ts';
import { type ApiProcess, startApiProcess } from '../support/api/api-process.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// One fleet with real shells, and three servers of it in processes of their own.

let stack: TestFleet;
let servers: ApiProcess[];
let callers: ApiCaller[];
beforeAll(async () => {
  stack = await startFleet();
  servers = await Promise.all([1, 2, 3].map(() => startApiProcess(stack, { SHELLFLEET_LOG_LEVEL: 'info' })));
  const { key } = await stack.fleet.keys.create({ name: 'test', scopes: ['submit', 'read'] });
  callers = servers.map(({ url }) => new ApiCaller(url, key));
});
afterAll(async () => {
  await Promise.all(servers?.map((server) => server[Symbol.asyncDispose]()) ?? []);
  await stack?.[Symbol.asyncDispose]();
});

const caller = (index: number) => callers[index] as ApiCaller;
const server = (index: number) => servers[index] as ApiProcess;

describe('the servers of one fleet', () => {
  test('share sessions: what one accepts, another reads', async () => {
    const body = { script: 'cd /tmp; echo at one' };
    const { status, json } = await caller(0).call('POST', '/sessions/shared/commands', { body });
    expect(status).toBe(202);
    const events = await Array.fromAsync(caller(1).events(`/commands/${json.id}/events`));
    expect(outputOf(events).toString()).toBe('at one\n');
    const next = { body: { script: 'pwd' }, headers: { prefer: 'wait=30' } };
    expect((await caller(1).call('POST', '/sessions/shared/commands', next)).json).toMatchObject({ stdout: '/tmp\n' });
  });

  test('carry the trace of a request to the command', async () => {
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const { json } = await caller(0).call('POST', '/sessions/shared/commands', {
      body: { script: 'echo $TRACEPARENT', traceparent: true },
      headers: { prefer: 'wait=30', traceparent: `00-${trace}-b7ad6b7169203331-01` },
    });
    expect(json.stdout).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01\n$`));
  });

  test('continue a stream without a lost or doubled byte when servers die and stop', async () => {
    const lines = 300;
    const script = `for i in $(seq ${lines}); do printf 'line %d \\303\\251\\000\\n' $i; sleep 0.01; done`;
    const { json } = await caller(0).call('POST', '/sessions/shared/commands', { body: { script } });
    const events: ReceivedEvent[] = [];
    /** Reads from a server after the last event, until the stream ends or breaks off. */
    const read = async (index: number, onEvent: () => void) => {
      const stream = caller(index).events(`/commands/${json.id}/events`, events.at(-1)?.id);
      for await (const event of stream) {
        events.push(event);
        onEvent();
      }
    };
    const exits: Promise<number | null>[] = [];
    const stopOnce = (index: number, signal: NodeJS.Signals) => () => {
      if (exits.length === index) exits.push(server(index).stop(signal));
    };
    await read(0, stopOnce(0, 'SIGKILL')).catch(() => {});
    const atKill = events.length;
    await read(1, stopOnce(1, 'SIGTERM'));
    const atStop = events.length;
    expect([atKill > 0, atStop > atKill, events.at(-1)?.type]).toEqual([true, true, 'command.output']);
    await read(2, () => {});
    const wanted = Array.from({ length: lines }, (_, index) => `line ${index + 1} é\0\n`).join('');
    expect(outputOf(events).toString()).toBe(wanted);
    expect(events.filter(({ type }) => type === 'command.completed')).toHaveLength(1);
    expect(await Promise.all(exits)).toEqual([null, 0]);
  });
});
