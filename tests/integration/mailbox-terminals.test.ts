// The two scripts of a terminal: what its user says, and what it shows.
import { close, show, type } from '@shellfleet/mailbox';
import { TERMINAL_TTL_MS, terminalKeys } from '@shellfleet/protocol';
import { ulid } from 'ulid';
import { beforeEach, expect, test } from 'vitest';
import { own } from '../support/mailbox-session.ts';
import { generation, keys, redis } from '../support/open-mailbox.ts';

let terminal: string;
beforeEach(() => {
  terminal = ulid();
});

const says = (number: number, messages: string[], rest = {}) =>
  type(redis, keys, { terminal, generation, begin: false, number, read: 0, messages, ...rest });
const begins = () => says(1, [], { begin: true });
const shows = (owner: Parameters<typeof show>[0], number: number, messages: string[], rest = {}) =>
  show(owner, { terminal, taken: 0, number, rawTo: 100, messages, ...rest });
const idsIn = async (stream: 'typed' | 'shown') =>
  (await redis.xrange(terminalKeys(keys, terminal)[stream], '-', '+')).map(([id, fields]) => `${id} ${fields[1]}`);

test('messages go in once and in order, whatever arrives twice', async () => {
  expect(await begins()).toEqual({ type: 'said', host: '', next: 1 });
  expect(await says(1, ['a', 'b'])).toEqual({ type: 'said', host: '', next: 3 });
  expect(await says(1, ['a', 'b'])).toEqual({ type: 'misplaced', host: '', next: 3 });
  expect(await says(4, ['d'])).toEqual({ type: 'misplaced', host: '', next: 3 });
  expect(await begins()).toEqual({ type: 'said', host: '', next: 3 });
  expect(await idsIn('typed')).toEqual(['1-0 a', '2-0 b']);
});

test('what is shown goes in once and in order, and is trimmed when it was read', async () => {
  await begins();
  const owner = await own(redis, keys);
  expect(await shows(owner, 1, ['a', 'b'])).toEqual({ type: 'stored', next: 3 });
  expect(await shows(owner, 1, ['a', 'b'])).toEqual({ type: 'misplaced', next: 3 });
  expect(await shows(owner, 3, ['c'], { rawTo: 105 })).toEqual({ type: 'stored', next: 4 });
  await says(1, [], { read: 2 });
  expect(await idsIn('shown')).toEqual(['3-0 c']);
  expect(await redis.hgetall(terminalKeys(keys, terminal).terminal)).toEqual({ typed: '0', shown: '3', raw: '105' });
});

test('what was taken is trimmed', async () => {
  await begins();
  const owner = await own(redis, keys);
  await says(1, ['a', 'b', 'c']);
  expect(await shows(owner, 1, [], { taken: 2 })).toEqual({ type: 'stored', next: 1 });
  expect(await idsIn('typed')).toEqual(['3-0 c']);
});

test('who finds 64 waiting waits, and loses nothing', async () => {
  await begins();
  const owner = await own(redis, keys);
  const many = Array.from({ length: 64 }, (_, index) => `m${index}`);
  await says(1, many);
  expect(await says(65, ['one more'])).toEqual({ type: 'full', host: 'h1', next: 65 });
  await shows(owner, 1, many, { taken: 1 });
  expect(await shows(owner, 65, ['one more'])).toEqual({ type: 'full', next: 65 });
  expect(await says(65, ['one more'], { read: 1 })).toEqual({ type: 'said', host: 'h1', next: 66 });
  expect(await shows(owner, 65, ['one more'])).toEqual({ type: 'stored', next: 66 });
});

test('only the owner shows, and only in the life that is open is anything said', async () => {
  await begins();
  const first = await own(redis, keys, 'h1');
  const second = await own(redis, keys, 'h2');
  expect(await shows(first, 1, ['late'])).toEqual({ type: 'fenced' });
  expect(await says(1, ['x'], { generation: '99' })).toEqual({ type: 'closed' });
  await close(redis, keys, generation, false);
  expect(await says(1, ['x'])).toEqual({ type: 'closed' });
  expect(await shows(second, 1, ['its end'])).toEqual({ type: 'stored', next: 2 });
  expect([await idsIn('typed'), await idsIn('shown')]).toEqual([[], ['1-0 its end']]);
});

test('all of it is gone when its user was not heard of for its time, and then nothing is shown', async () => {
  await begins();
  const owner = await own(redis, keys);
  await says(1, ['a']);
  await shows(owner, 1, ['b']);
  const all = Object.values(terminalKeys(keys, terminal)).slice(0, 3);
  for (const key of all) {
    const left = await redis.pttl(key);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(TERMINAL_TTL_MS);
  }
  await redis.del(...all);
  expect(await says(2, ['c'])).toEqual({ type: 'unknown' });
  expect(await shows(owner, 2, ['d'])).toEqual({ type: 'deserted' });
  expect(await redis.exists(...all)).toBe(0);
});

test('each word rings the host, and each showing the user', async () => {
  await begins();
  const owner = await own(redis, keys);
  const heard: string[] = [];
  const listener = redis.duplicate();
  const { feed } = terminalKeys(keys, terminal);
  const bell = `${keys.namespace}:bell:h1`;
  listener.on('message', (channel: string, message: string) => heard.push(`${channel} ${message}`));
  await listener.subscribe(bell, feed);
  await says(1, ['a']);
  await shows(owner, 1, ['b']);
  await listener.ping();
  expect(heard).toEqual([`${bell} terminal ${keys.member} ${terminal}`, `${feed} 1`]);
  listener.disconnect();
});
