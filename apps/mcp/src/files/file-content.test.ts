import type { Session } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { readPart, toBytes } from './file-content.ts';

const { signal } = new AbortController();

/** A session with one file, which is streamed in pieces of three bytes. */
function withFile(data: Uint8Array): Session {
  const files = {
    stat: async () => ({ size: data.byteLength }),
    async *stream() {
      for (let at = 0; at < data.byteLength; at += 3) yield data.subarray(at, at + 3);
    },
  };
  return { files } as unknown as Session;
}

describe('a part of a file', () => {
  test.each([1, 2, 3, 4, 5, 7, 100])('joins to the whole text when it is read %i bytes at a time', async (most) => {
    const text = 'a é 😀 z';
    const session = withFile(Buffer.from(text));
    const parts: Buffer[] = [];
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const part = await readPart(session, '/f', { offset, most, signal });
      parts.push(Buffer.from(part.content, part.encoding));
      offset = part.next;
    }
    expect(Buffer.concat(parts).toString()).toBe(text);
  });

  test('is base64 if it is no text', async () => {
    const session = withFile(Uint8Array.of(0x61, 0, 0x62, 0xff));
    const part = await readPart(session, '/f', { offset: 1, most: 2, signal });
    expect(part).toEqual({ size: 4, bytes: 2, encoding: 'base64', content: 'AGI=', next: 3 });
  });

  test('is empty for an empty file, and behind the end of a file', async () => {
    const empty = { bytes: 0, encoding: 'utf8', content: '' };
    expect(await readPart(withFile(new Uint8Array()), '/f', { offset: 0, most: 9, signal })).toEqual({
      size: 0,
      ...empty,
    });
    expect(await readPart(withFile(Uint8Array.of(1)), '/f', { offset: 5, most: 9, signal })).toEqual({
      size: 1,
      ...empty,
    });
  });
});

describe('a content that a model writes', () => {
  test.each<[string, 'utf8' | 'base64', string]>([
    ['é', 'utf8', 'c3a9'],
    ['/w==', 'base64', 'ff'],
    ['_w', 'base64', 'ff'],
    ['AAEC\nAwQF\n', 'base64', '000102030405'],
    ['', 'base64', ''],
    ['A'.repeat(8_000_000), 'base64', '00'.repeat(6_000_000)],
  ])('%.20j in %s is written as bytes', (content, encoding, hex) => {
    expect(toBytes(content, encoding).toString('hex') === hex).toBe(true);
  });

  test.each<[string, 'utf8' | 'base64']>([
    ['plain text.', 'base64'],
    ['!!', 'base64'],
    ['AAECA', 'base64'],
    ['AA==AA', 'base64'],
    ['a\ud800', 'utf8'],
  ])('%j in %s is refused, because a part would be lost', (content, encoding) => {
    expect(() => toBytes(content, encoding)).toThrow(expect.objectContaining({ code: 'COMMAND_INVALID' }));
  });
});
