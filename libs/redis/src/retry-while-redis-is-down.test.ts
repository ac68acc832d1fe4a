import { ShellfleetError } from '@shellfleet/protocol';
import { describe, expect, test, vi } from 'vitest';
import { toQueueError } from './queue-error.ts';
import { retryWhileRedisIsDown } from './retry-while-redis-is-down.ts';

const closed = () => new Error('Connection is closed.');
const reply = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' });

function callThatFails(...errors: unknown[]) {
  return vi.fn(async () => {
    if (errors.length > 0) throw errors.shift();
    return 'answer';
  });
}

const atOnce = { waitBeforeRetry: async () => {} };

describe('a write while Redis is down', () => {
  test('is repeated until Redis answers, with a notice when the outage begins and ends', async () => {
    const call = callThatFails(toQueueError(closed()), toQueueError(reply('OOM command not allowed')));
    const availability = { onDown: vi.fn(), onUp: vi.fn() };
    expect(await retryWhileRedisIsDown(call, undefined, { ...atOnce, availability })).toBe('answer');
    expect([call, availability.onDown, availability.onUp].map(({ mock }) => mock.calls.length)).toEqual([3, 1, 1]);
  });

  test('sends no notice when Redis answers the first call', async () => {
    const availability = { onDown: vi.fn(), onUp: vi.fn() };
    await retryWhileRedisIsDown(callThatFails(), undefined, { availability });
    expect([availability.onDown, availability.onUp].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  });

  test.each([new ShellfleetError('LEASE_LOST', 'another host has it'), new TypeError('a bug')])(
    'is not repeated after an error of another kind: %s',
    async (error) => {
      const call = callThatFails(error);
      await expect(retryWhileRedisIsDown(call, undefined, atOnce)).rejects.toBe(error);
      expect(call).toHaveBeenCalledOnce();
    },
  );

  test('is not repeated when its signal is aborted', async () => {
    const call = callThatFails(toQueueError(closed()));
    await expect(retryWhileRedisIsDown(call, AbortSignal.abort())).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    expect(call).toHaveBeenCalledOnce();
  });
});

describe('a read that rejects on error replies', () => {
  const options = { ...atOnce, errorReplies: 'throw' } as const;

  test('is repeated while Redis is unreachable or starting', async () => {
    const call = callThatFails(closed(), toQueueError(closed()), reply('LOADING Redis is loading the dataset'));
    expect(await retryWhileRedisIsDown(call, undefined, options)).toBe('answer');
  });

  test.each([reply('WRONGTYPE Operation against a key'), toQueueError(reply('WRONGTYPE Operation against a key'))])(
    'ends with QUEUE_UNAVAILABLE when Redis refuses it: %s',
    async (error) => {
      const refused = retryWhileRedisIsDown(callThatFails(error), undefined, options);
      await expect(refused).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    },
  );

  test('rejects with the error of waitBeforeRetry', async () => {
    const reason = new Error('nobody reads any more');
    const waitBeforeRetry = () => Promise.reject(reason);
    await expect(
      retryWhileRedisIsDown(callThatFails(closed()), undefined, { ...options, waitBeforeRetry }),
    ).rejects.toBe(reason);
  });
});
