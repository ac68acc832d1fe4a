import { describe, expect, test } from 'vitest';
import { type LogPage, toLogPage, toLogReply } from './log.ts';

const page: LogPage = {
  pieces: [
    { stream: 'stdout', offset: 5, data: Buffer.from('out') },
    { stream: 'stderr', offset: 0, data: Buffer.from('\n') },
    { stream: 'stdout', offset: 8, data: Buffer.from('put') },
  ],
  more: true,
};

describe('a page of a log', () => {
  test('is the same after its way as a reply and data', () => {
    const { reply, data } = toLogReply(page);
    expect(toLogPage(reply, Buffer.concat(data))).toEqual(page);
  });

  test.each(['out\npu', 'out\nput.'])('is refused when its data are %j', (data) => {
    expect(() => toLogPage(toLogReply(page).reply, Buffer.from(data))).toThrow('7');
  });
});
