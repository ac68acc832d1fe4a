import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { readBody } from './read-body.ts';

describe('a body that is being read', () => {
  test('ends with its signal while it stays away, after what has arrived', async () => {
    const [body, ending] = [new PassThrough(), new AbortController()];
    body.write('abc');
    const pieces = readBody(body, ending.signal);
    expect(await pieces.next()).toEqual({ done: false, value: Buffer.from('abc') });
    const next = pieces.next();
    ending.abort(new Error('The key was revoked.'));
    await expect(next).rejects.toThrow('The key was revoked.');
  });
});
