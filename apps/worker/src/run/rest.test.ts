import type { Owner } from '@shellfleet/mailbox';
import { type CarriedEntry, entryIdSchema, sessionKeys } from '@shellfleet/protocol';
import { expect, test, vi } from 'vitest';
import type { BegunId } from '../journal/journal.ts';
import { Rest } from './rest.ts';

const id = entryIdSchema.parse('01M83GJZ7TQZQ9XE36XT5S64QZ');
const STARTED: CarriedEntry = {
  ...{ id, payload: 'sealed', kind: 'command', inbox: 'p1', acceptedAt: '1', retry: 'never' },
  ...{ startedAt: '2', fence: '7' },
};
const HEAD: CarriedEntry = { ...STARTED, startedAt: '' };

const next = entryIdSchema.parse('01M83GJZ7TQZQ9XE36XT5S64R0');

function setUp(admission = '') {
  const begun = new Set<string>();
  const owner = { fence: 7, host: 'h1', keys: sessionKeys('ns', 't', 's'), admission } as Owner;
  const journal = { knows: (entry: BegunId) => begun.has(entry.id) };
  const withdraw = vi.fn();
  return { begun, withdraw, rest: new Rest({ mailbox: { owner, withdraw }, journal }) };
}

test('a wake-up brings its entry once', async () => {
  const { rest } = setUp();
  rest.bring(STARTED);
  expect(await rest.next('takes', false)).toEqual({
    type: 'started',
    entry: {
      ...{ id, payload: 'sealed', kind: 'command', inbox: 'p1', acceptedAt: 1, retry: 'never', starts: 1 },
      ...{ startedAt: 2, fence: 7, host: 'h1', offsets: { stdout: 0, stderr: 0 }, seq: 0 },
    },
  });
  expect(await rest.next('takes', false)).toEqual({ type: 'empty' });
  rest.bring(HEAD);
  expect(await rest.next('takes', true)).toMatchObject({
    type: 'needs-admission',
    entry: { id, startedAt: 0, fence: 0, host: '' },
  });
});

test('REST-3: a wake-up is not believed about another fence, or an entry that began here', async () => {
  const { rest, begun } = setUp();
  rest.bring({ ...STARTED, fence: '6' });
  expect(await rest.next('takes', false)).toEqual({ type: 'empty' });
  begun.add(id);
  rest.bring(STARTED);
  expect(await rest.next('takes', false)).toEqual({ type: 'empty' });
});

test('REST-1: a wake-up that comes after its entry was taken brings nothing, and one of the next entry stays', async () => {
  const { rest } = setUp();
  rest.bring(STARTED);
  rest.started({ id });
  expect(await rest.next('takes', false)).toEqual({ type: 'empty' });
  rest.bring(STARTED);
  expect(await rest.next('takes', false)).toEqual({ type: 'empty' });
  rest.bring({ ...STARTED, id: next });
  rest.started({ id });
  expect(await rest.next('takes', false)).toMatchObject({ entry: { id: next } });
});

test('what a wake-up has brought is forgotten when Redis came back with other data', async () => {
  const { rest } = setUp();
  rest.bring(STARTED);
  rest.forget();
  expect(await rest.next('takes', false)).toEqual({ type: 'empty' });
});

test('REST-2: the mailbox is asked to withdraw once after each rest, and says what was started before', async () => {
  const { rest, withdraw } = setUp();
  withdraw.mockResolvedValue({ type: 'running', entry: { id } });
  expect(await rest.withdraw()).toEqual({ type: 'empty' });
  rest.mayBegin();
  expect(await rest.withdraw()).toEqual({ type: 'running', entry: { id } });
  expect(await rest.withdraw()).toEqual({ type: 'empty' });
  expect(withdraw).toHaveBeenCalledTimes(1);
});

test('under rules `submit` starts nothing, so there is nothing to withdraw', async () => {
  const { rest, withdraw } = setUp('digest');
  rest.mayBegin();
  expect(await rest.withdraw()).toEqual({ type: 'empty' });
  expect(withdraw).not.toHaveBeenCalled();
});

test('an entry that is not started is brought only to a host that takes entries and judges them', async () => {
  const { rest } = setUp();
  for (const [how, judges] of [
    ['takes', false],
    ['not-now', true],
    ['ends', true],
  ] as const) {
    rest.bring(HEAD);
    expect(await rest.next(how, judges)).toEqual({ type: 'empty' });
  }
});
