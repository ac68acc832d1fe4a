import { describe, expect, test } from 'vitest';
import { countNewlines } from './lines.ts';

describe('countNewlines', () => {
  test('counts all newlines in parts of any length at any offset', () => {
    // Bytes that differ from a newline in one bit, and bytes with newlines as neighbours.
    const memory = Buffer.alloc(
      4_096,
      Buffer.from([10, 11, 10, 10, 0x8a, 10, 0, 255, 9, 10, 10, 10, 10, 138, 10, 2, 26]),
    );
    for (let offset = 0; offset < 8; offset += 1)
      for (const length of [0, 1, 2, 3, 4, 5, 7, 8, 9, 1_019, 1_020, 1_021, 1_024, 2_041, 4_000]) {
        const bytes = memory.subarray(offset, offset + length);
        expect(countNewlines(bytes), `${length} bytes from ${offset} on`).toBe(
          bytes.filter((byte) => byte === 10).length,
        );
      }
    expect(countNewlines(Buffer.alloc(1 << 20, 10))).toBe(1 << 20);
  });
});
