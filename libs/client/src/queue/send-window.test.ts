import { ShellfleetError } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { SendWindow } from './send-window.ts';

function stage(room: number) {
  const window = new SendWindow(room);
  const sent: number[] = [];
  const answers: PromiseWithResolvers<number>[] = [];
  const calls = (count: number) =>
    Array.from({ length: count }, (_, number) => {
      const answer = Promise.withResolvers<number>();
      answers.push(answer);
      return window.enter(() => {
        sent.push(number);
        return answer.promise;
      });
    });
  return { sent, answers, calls };
}

describe('send window', () => {
  test('sends calls that fit at once, and the others in call order as replies arrive', async () => {
    const { sent, answers, calls } = stage(2);
    const replies = calls(5);
    expect(sent).toEqual([0, 1]);
    answers[1]?.resolve(11);
    expect(await replies[1]).toBe(11);
    expect(sent).toEqual([0, 1, 2]);
    for (const [number, answer] of answers.entries()) answer.resolve(number + 10);
    expect(await Promise.all(replies)).toEqual([10, 11, 12, 13, 14]);
    expect(sent).toEqual([0, 1, 2, 3, 4]);
  });

  test('rejects a refused call alone, and all waiting calls when a reply is missing', async () => {
    const { sent, answers, calls } = stage(1);
    const replies = calls(4);
    const full = new Error('OOM command not allowed');
    full.name = 'ReplyError';
    answers[0]?.reject(new ShellfleetError('QUEUE_UNAVAILABLE', 'full', {}, { cause: full }));
    await expect(replies[0]).rejects.toThrow('full');
    expect(sent).toEqual([0, 1]);
    answers[1]?.reject(new ShellfleetError('QUEUE_UNAVAILABLE', 'away', {}, { cause: new Error('Command timed out') }));
    const ends = await Promise.allSettled(replies.slice(1));
    expect(ends.map((end) => end.status === 'rejected' && end.reason.message)).toEqual(['away', 'away', 'away']);
    expect(sent).toEqual([0, 1]);
  });
});
