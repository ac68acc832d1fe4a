import { describe, expect, test } from 'vitest';
import { encodeEntries, parseFileRecords, parsePackedFiles } from './file-records.ts';
import { MalformedFrame } from './frames.ts';
import { uint32s, uint64s } from './messages.ts';

describe('records of files', () => {
  test('keep names with newlines and spaces, and the targets of links', () => {
    const stdout = Buffer.from(
      'f\x0012\x00644\x001700000000123\0a\nb c\0\0d\x000\x00755\x001\0sub\0\0l\x001\x00777\x002\0link\0../t\0u\x000\x000\x003\0no\0\0',
    );
    expect(parseFileRecords(stdout)).toEqual([
      { type: 'file', size: 12, mode: 0o644, modifiedMs: 1_700_000_000_123, name: 'a\nb c' },
      { type: 'directory', size: 0, mode: 0o755, modifiedMs: 1, name: 'sub' },
      { type: 'symlink', size: 1, mode: 0o777, modifiedMs: 2, name: 'link', target: '../t' },
      { type: 'directory', size: 0, mode: 0, modifiedMs: 3, name: 'no', unreadable: true },
    ]);
  });

  test('encode kind, mode, lengths, name and content', () => {
    const bytes = encodeEntries([
      { kind: 'file', name: 'é', mode: 0o600, content: Buffer.from('xy') },
      { kind: 'directory', name: 'd', mode: 0o755 },
    ]);
    expect(bytes).toEqual(
      Buffer.concat([uint32s(0x66, 0o600, 2, 2), Buffer.from('éxy'), uint32s(0x64, 0o755, 1, 0), Buffer.from('d')]),
    );
  });

  test('decode packed files in order, and refuse one that is cut short', () => {
    const whole = Buffer.concat([uint32s(0, 0o755), uint64s(3), Buffer.from('abc'), uint32s(2, 0), uint64s(0)]);
    expect(parsePackedFiles(whole)).toEqual([
      { errno: 0, mode: 0o755, content: Buffer.from('abc') },
      { errno: 2, mode: 0, content: Buffer.alloc(0) },
    ]);
    expect(() => parsePackedFiles(whole.subarray(0, -1))).toThrow(MalformedFrame);
  });
});
