import { ShellfleetError, sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test, vi } from 'vitest';
import { createHostMailbox, type HostMailboxCalls } from './host-mailbox.ts';
import { FENCED, type Owner } from './owner.ts';

const owner: Owner = { redis: {} as never, keys: sessionKeys('ns', 't', 's'), fence: 7, host: 'h' };
const down = () => new ShellfleetError('QUEUE_UNAVAILABLE', 'no reply');

function open(calls: Partial<HostMailboxCalls>) {
  const lost = new AbortController();
  const onFenced = vi.fn();
  return { lost, onFenced, mailbox: createHostMailbox(owner, { signal: lost.signal, onFenced }, calls) };
}

describe('a mailbox of a host', () => {
  test('passes its owner to each call, and repeats the call while Redis is down', async () => {
    const rerun = vi
      .fn<HostMailboxCalls['rerun']>()
      .mockRejectedValueOnce(down())
      .mockResolvedValue({ type: 'refused' });
    const { mailbox } = open({ rerun });
    expect(await mailbox.rerun({ id: 'e', starts: 1 })).toEqual({ type: 'refused' });
    expect(rerun.mock.calls).toEqual(Array(2).fill([owner, { id: 'e', starts: 1 }]));
  });

  test('repeats no call once the session is lost', async () => {
    const { mailbox, lost } = open({ take: () => Promise.reject(down()) });
    lost.abort();
    await expect(mailbox.take()).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
  });

  test('reports a fenced reply before the caller gets that reply', async () => {
    const { mailbox, onFenced } = open({ take: async () => FENCED });
    const reported = mailbox.take().then((reply) => [reply, onFenced.mock.calls.length]);
    expect(await reported).toEqual([FENCED, 1]);
  });

  test('runs the function again in each attempt of a retry, and reports fenced replies', async () => {
    const take = vi.fn<HostMailboxCalls['take']>().mockRejectedValueOnce(down()).mockResolvedValue(FENCED);
    const { mailbox, onFenced } = open({ take });
    const decide = vi.fn();
    const retried = mailbox.retry((once) => {
      decide();
      return once.take();
    });
    expect(await retried).toEqual(FENCED);
    expect([decide.mock.calls.length, take.mock.calls.length, onFenced.mock.calls.length]).toEqual([2, 2, 1]);
  });

  test('uses the current digest when it decides about entries', async () => {
    const digests: (string | undefined)[] = [];
    const { mailbox } = open({
      take: async ({ admission }) => {
        digests.push(admission);
        return { type: 'empty' };
      },
    });
    let digest = 'one';
    const deciding = mailbox.under(() => digest);
    await deciding.take();
    digest = 'two';
    await deciding.take();
    await mailbox.take();
    expect(digests).toEqual(['one', 'two', undefined]);
  });
});
