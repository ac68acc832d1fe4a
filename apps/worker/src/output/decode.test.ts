import { describe, expect, test } from 'vitest';
import { CharacterBoundary, orphanedHead, unfinishedTail } from './decode.ts';

const TEXTS = ['a', 'é', '€', '😀', 'aé€😀z', '\ufeffbom', '日本語\n'].map((text) => Buffer.from(text));
const BROKEN = ['ff', 'c3', 'c341', 'e282', 'f09f98', '80', 'c0af', 'eda080', '41f09f41', 'fe80808080'].map((hex) =>
  Buffer.from(hex, 'hex'),
);

describe('CharacterBoundary', () => {
  test.each([...TEXTS, ...BROKEN])('passes %j byte for byte at every split point', (input) => {
    for (let at = 0; at <= input.length; at += 1) {
      const stage = new CharacterBoundary();
      const parts = [stage.push(input.subarray(0, at)), stage.push(input.subarray(at)), stage.end()];
      expect(Buffer.concat(parts)).toEqual(input);
      expect(stage.pendingBytes).toBe(0);
    }
  });

  test.each(TEXTS)('never splits a character of %j', (input) => {
    const stage = new CharacterBoundary();
    const parts = [...input].map((byte) => stage.push(Buffer.from([byte])));
    expect([...parts, stage.end()].map((part) => part.toString()).join('')).toBe(input.toString());
  });

  test('holds at most three bytes, only of a character that can still become valid', () => {
    const stage = new CharacterBoundary();
    stage.push(Buffer.from('f09f98', 'hex'));
    expect(stage.pendingBytes).toBe(3);
    stage.push(Buffer.from('41', 'hex'));
    expect(stage.pendingBytes).toBe(0);
  });

  test.each([
    ['', 0, 0],
    ['41', 0, 0],
    ['41c3', 1, 0],
    ['e282', 2, 0],
    ['f09f98', 3, 0],
    ['c3a9', 0, 0],
    ['8080', 0, 2],
    ['80808080', 0, 3],
    ['a9c3', 1, 1],
  ])('finds the broken ends of %s', (hex, tail, head) => {
    const bytes = Buffer.from(hex, 'hex');
    expect([unfinishedTail(bytes), orphanedHead(bytes)]).toEqual([tail, head]);
  });
});
