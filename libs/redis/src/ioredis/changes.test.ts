import { Command } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { toRequest } from './changes.ts';

describe('a script call', () => {
  test.each([
    ['texts', ['a'.repeat(40), 1, 'key', '', 'grüße 🐚']],
    ['numbers', ['sha', 2, 'one', 'two', 0, -1, 1.5, 2 ** 53]],
    ['bytes that are no text', ['sha', 0, 'grüße', Buffer.from([0xff, 0x0d, 0x0a, 0xc3]), 'end', Buffer.alloc(0)]],
    ['bytes at the end', ['sha', 0, Buffer.from('hi\r\n')]],
  ])('has the same bytes as a script call of ioredis, with %s', (_, args) => {
    const theirs = new Command('evalsha', [...args]).toWritable({});
    expect(Buffer.from(toRequest('evalsha', args))).toEqual(Buffer.from(theirs));
  });
});
