import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameType,
  HEADER_BYTES,
  MalformedFrame,
  SYNC_BYTES,
} from './frames.ts';

const sync = Uint8Array.from([0xa5, 0x5a, 1, 255, 0, 126, 129, 195]);
const maxPayload = 4096;

const frame = (fields: Partial<Frame> = {}): Frame => ({
  type: FrameType.output,
  stream: 1,
  flags: 7,
  id: Uint8Array.from({ length: 16 }, (_, i) => i + 1),
  fence: 2 ** 40 + 3,
  offset: 2 ** 41 + 5,
  payload: Buffer.from('some output\0\xff', 'latin1'),
  ...fields,
});

const plain = (frames: Frame[]) => frames.map((one) => ({ ...one, id: [...one.id], payload: [...one.payload] }));

function decodeIn(pieces: Uint8Array[], word?: Uint8Array): Frame[] {
  const decoder = new FrameDecoder(word ? { maxPayload, sync: word } : { maxPayload });
  return pieces.flatMap((piece) => decoder.push(piece));
}

describe.each([
  ['the socket', undefined],
  ['attach', sync],
] as const)('frames over %s', (_, word) => {
  // FRAME-1
  test('survive every split point of their bytes', () => {
    const frames = [frame(), frame({ payload: new Uint8Array(0), type: FrameType.end }), frame({ offset: 0 })];
    const bytes = Buffer.concat(frames.map((one) => encodeFrame(one, word)));
    for (let at = 0; at <= bytes.length; at++) {
      expect(plain(decodeIn([bytes.subarray(0, at), bytes.subarray(at)], word))).toEqual(plain(frames));
    }
  });

  // FRAME-1
  test('survive being cut into any pieces', () => {
    const anyFrame = fc.record({
      type: fc.integer({ min: 0, max: 255 }),
      stream: fc.integer({ min: 0, max: 255 }),
      flags: fc.integer({ min: 0, max: 65_535 }),
      id: fc.uint8Array({ minLength: 16, maxLength: 16 }),
      fence: fc.maxSafeNat(),
      offset: fc.maxSafeNat(),
      payload: fc.uint8Array({ maxLength: 300 }),
    });
    fc.assert(
      fc.property(fc.array(anyFrame, { maxLength: 6 }), fc.array(fc.nat(200), { maxLength: 40 }), (frames, cuts) => {
        const bytes = Buffer.concat(frames.map((one) => encodeFrame(one, word)));
        const pieces: Buffer[] = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          pieces.push(bytes.subarray(at, at + cut));
          at += cut;
        }
        expect(plain(decodeIn(pieces, word))).toEqual(plain(frames));
      }),
      { numRuns: 200 },
    );
  });

  // FRAME-2, FRAME-3
  test('are refused or skipped if they are random bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 500 }), { maxLength: 8 }), (pieces) => {
        try {
          for (const one of decodeIn(pieces, word)) expect(one.payload.length).toBeLessThanOrEqual(maxPayload);
        } catch (error) {
          expect(word).toBeUndefined();
          expect(error).toBeInstanceOf(MalformedFrame);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('frames over the socket', () => {
  // FRAME-2
  test('end the stream when a length exceeds the limit', () => {
    const bytes = encodeFrame(frame());
    bytes.writeUInt32LE(maxPayload + 1, 0);
    expect(() => decodeIn([bytes])).toThrow(MalformedFrame);
  });
});

// FRAME-3
describe('damage of a frame over attach', () => {
  const before = frame({ offset: 1 });
  const after = frame({ offset: 3 });
  const damaged = encodeFrame(frame({ offset: 2 }), sync);

  test('costs only the damaged frame, wherever that frame is cut', () => {
    for (let length = 0; length < damaged.length; length++) {
      const bytes = [encodeFrame(before, sync), damaged.subarray(0, length), encodeFrame(after, sync)];
      expect(plain(decodeIn([Buffer.concat(bytes)], sync))).toEqual(plain([before, after]));
      expect(plain(decodeIn(bytes, sync))).toEqual(plain([before, after]));
    }
  });

  test('costs only that frame when any single bit is flipped', () => {
    for (let bit = 0; bit < damaged.length * 8; bit++) {
      const flipped = Buffer.from(damaged);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      const bytes = [encodeFrame(before, sync), flipped, encodeFrame(after, sync)];
      const decoded = plain(decodeIn([Buffer.concat(bytes)], sync));
      expect(decoded).toEqual(plain([before, after]));
    }
  });

  test('does not delay the next frame when most of the largest possible frame is missing', () => {
    const half = encodeFrame(frame({ payload: new Uint8Array(maxPayload) }), sync).subarray(
      0,
      SYNC_BYTES + HEADER_BYTES + 10,
    );
    expect(plain(decodeIn([half, encodeFrame(after, sync)], sync))).toEqual(plain([after]));
  });

  test('is not assumed when a whole frame has the sync word in its data', () => {
    const carrier = frame({ payload: Buffer.concat([sync, sync]) });
    expect(plain(decodeIn([encodeFrame(carrier, sync), encodeFrame(after, sync)], sync))).toEqual(
      plain([carrier, after]),
    );
  });

  test('is counted in skipped bytes', () => {
    const decoder = new FrameDecoder({ maxPayload, sync });
    expect(decoder.push(Buffer.concat([Buffer.from('junk'), encodeFrame(after, sync)]))).toHaveLength(1);
    expect(decoder.skipped).toBe(4);
  });

  test('takes no memory for skipped bytes, however many arrive', () => {
    const decoder = new FrameDecoder({ maxPayload, sync });
    for (let i = 0; i < 100; i++) decoder.push(randomBytes(10_000));
    expect(decoder.skipped).toBeGreaterThan(100 * 10_000 - maxPayload - 100);
    expect(plain(decoder.push(encodeFrame(after, sync)))).toEqual(plain([after]));
  });
});
