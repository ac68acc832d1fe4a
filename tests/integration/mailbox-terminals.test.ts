// The two scripts of a terminal. One appends its input, the other its output.
import { appendTerminalInput, appendTerminalOutput, close } from '@shellfleet/mailbox';
import { encodeWakeUp, TERMINAL_TTL_MS, terminalKeys, wakeUpsChannel } from '@shellfleet/protocol';
import { ulid } from 'ulid';
import { beforeEach, describe, expect, test } from 'vitest';
import { own } from '../support/mailbox-session.ts';
import { generation, keys, redis, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

let terminal: string;
beforeEach(() => {
  terminal = ulid();
});

const addInput = (number: number, messages: string[], rest = {}) =>
  appendTerminalInput(redis, keys, { terminal, generation, begin: false, number, read: 0, messages, ...rest });
const begin = () => addInput(1, [], { begin: true });
const addOutput = (owner: Parameters<typeof appendTerminalOutput>[0], number: number, messages: string[], rest = {}) =>
  appendTerminalOutput(owner, { terminal, taken: 0, number, rawTo: 100, messages, ...rest });
const idsIn = async (stream: 'input' | 'output') =>
  (await redis.xrange(terminalKeys(keys, terminal)[stream], '-', '+')).map(([id, fields]) => `${id} ${fields[1]}`);

describe('a terminal in the mailbox', () => {
  test('stores input once and in order, whatever arrives twice', async () => {
    expect(await begin()).toEqual({ type: 'stored', host: '', next: 1 });
    expect(await addInput(1, ['a', 'b'])).toEqual({ type: 'stored', host: '', next: 3 });
    expect(await addInput(1, ['a', 'b'])).toEqual({ type: 'misplaced', host: '', next: 3 });
    expect(await addInput(4, ['d'])).toEqual({ type: 'misplaced', host: '', next: 3 });
    expect(await begin()).toEqual({ type: 'stored', host: '', next: 3 });
    expect(await idsIn('input')).toEqual(['1-0 a', '2-0 b']);
  });

  test('stores output once and in order, and trims what was read', async () => {
    await begin();
    const owner = await own(redis, keys);
    expect(await addOutput(owner, 1, ['a', 'b'])).toEqual({ type: 'stored', next: 3 });
    expect(await addOutput(owner, 1, ['a', 'b'])).toEqual({ type: 'misplaced', next: 3 });
    expect(await addOutput(owner, 3, ['c'], { rawTo: 105 })).toEqual({ type: 'stored', next: 4 });
    await addInput(1, [], { read: 2 });
    expect(await idsIn('output')).toEqual(['3-0 c']);
    expect(await redis.hgetall(terminalKeys(keys, terminal).terminal)).toEqual({
      input: '0',
      output: '3',
      rawTo: '105',
    });
  });

  test('trims input that the terminal has taken', async () => {
    await begin();
    const owner = await own(redis, keys);
    await addInput(1, ['a', 'b', 'c']);
    expect(await addOutput(owner, 1, [], { taken: 2 })).toEqual({ type: 'stored', next: 1 });
    expect(await idsIn('input')).toEqual(['3-0 c']);
  });

  test('holds at most 64 messages on either side, and loses none', async () => {
    await begin();
    const owner = await own(redis, keys);
    const many = Array.from({ length: 64 }, (_, index) => `m${index}`);
    await addInput(1, many);
    expect(await addInput(65, ['one more'])).toEqual({ type: 'full', host: 'h1', next: 65 });
    await addOutput(owner, 1, many, { taken: 1 });
    expect(await addOutput(owner, 65, ['one more'])).toEqual({ type: 'full', next: 65 });
    expect(await addInput(65, ['one more'], { read: 1 })).toEqual({ type: 'stored', host: 'h1', next: 66 });
    expect(await addOutput(owner, 65, ['one more'])).toEqual({ type: 'stored', next: 66 });
  });

  test('accepts output only from the owner, and input only while the session is open', async () => {
    await begin();
    const first = await own(redis, keys, 'h1');
    const second = await own(redis, keys, 'h2');
    expect(await addOutput(first, 1, ['late'])).toEqual({ type: 'fenced' });
    expect(await addInput(1, ['x'], { generation: '99' })).toEqual({ type: 'closed' });
    await close(redis, keys, generation, false);
    expect(await addInput(1, ['x'])).toEqual({ type: 'closed' });
    expect(await addOutput(second, 1, ['its end'])).toEqual({ type: 'stored', next: 2 });
    expect([await idsIn('input'), await idsIn('output')]).toEqual([[], ['1-0 its end']]);
  });

  test('expires without calls of its user, after which no output is stored', async () => {
    await begin();
    const owner = await own(redis, keys);
    await addInput(1, ['a']);
    await addOutput(owner, 1, ['b']);
    const all = Object.values(terminalKeys(keys, terminal)).slice(0, 3);
    for (const key of all) {
      const left = await redis.pttl(key);
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(TERMINAL_TTL_MS);
    }
    await redis.del(...all);
    expect(await addInput(2, ['c'])).toEqual({ type: 'unknown' });
    expect(await addOutput(owner, 2, ['d'])).toEqual({ type: 'expired' });
    expect(await redis.exists(...all)).toBe(0);
  });

  test('wakes the host for input, and the user for output', async () => {
    await begin();
    const owner = await own(redis, keys);
    const received: string[] = [];
    const listener = redis.duplicate();
    const { feed } = terminalKeys(keys, terminal);
    const wakeUps = wakeUpsChannel(keys.namespace, keys.tenant, 'h1');
    const { tenant, session } = keys;
    listener.on('message', (channel: string, message: string) => received.push(`${channel} ${message}`));
    await listener.subscribe(wakeUps, feed);
    await addInput(1, ['a']);
    await addOutput(owner, 1, ['b']);
    await listener.ping();
    expect(received).toEqual([
      `${wakeUps} ${encodeWakeUp({ type: 'terminal', tenant, session, terminal })}`,
      `${feed} 1`,
    ]);
    listener.disconnect();
  });
});
