import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { fuzzBytes } from '@shellfleet/protocol/test-support';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NoiseResponder } from '../../test-support/index.ts';
import { LinkInitiator } from './link-initiator.ts';
import { encodeMessage, LinkMessages, MessageDecoder } from './link-messages.ts';
import { toPublicBytes } from './x25519.ts';

const { privateKey } = generateKeyPairSync('x25519');
const psk = randomBytes(32);
const publicKey = toPublicBytes(privateKey);

/** Returns both ends of a connection after the handshake. */
function connected(): { worker: LinkMessages; keeper: LinkMessages } {
  const initiator = new LinkInitiator({ privateKey, psk });
  const { reply, ...ciphers } = new NoiseResponder({ publicKey, psk }).reply(initiator.opening.subarray(2));
  const done = initiator.push(encodeMessage(reply));
  if (done === undefined) throw new Error('the handshake is not done');
  return { worker: done.messages, keeper: new LinkMessages(ciphers) };
}

function receive(messages: LinkMessages, pieces: Iterable<Uint8Array>): Buffer {
  return Buffer.concat(Array.from(pieces).flatMap((piece) => messages.push(piece)));
}

function* cut(bytes: Uint8Array, sizes: readonly number[]): Generator<Uint8Array> {
  let at = 0;
  for (const size of sizes) {
    yield bytes.subarray(at, at + size);
    at += size;
  }
  yield bytes.subarray(at);
}

describe('the messages of a connection, for any bytes', () => {
  test('deliver what was sent, however it is cut on its way', () => {
    const bytes = fc.uint8Array({ maxLength: 400 });
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 5 }), fc.array(fc.nat(80), { maxLength: 30 }), (sent, sizes) => {
        const { worker, keeper } = connected();
        const onWire = Buffer.concat(sent.map((piece) => keeper.encode(piece)));
        expect(receive(worker, cut(onWire, sizes))).toEqual(Buffer.concat(sent));
      }),
      { numRuns: 100 },
    );
  });

  test.each([65_518, 65_519, 65_520, 4 << 20])('carry %i bytes in as few messages as possible', (length) => {
    const { worker, keeper } = connected();
    const plain = randomBytes(length);
    const onWire = worker.encode(plain);
    expect(onWire.length).toBe(length + 18 * Math.ceil(length / 65_519));
    expect(receive(keeper, cut(onWire, [1, 65_536, 70_000]))).toEqual(plain);
  });

  test('deliver nothing of a changed, repeated or invented message', () => {
    const { keeper } = connected();
    const valid = [keeper.encode(Buffer.from('one')), keeper.encode(Buffer.alloc(200, 'x'))];
    fuzzBytes(
      valid,
      (bytes) => {
        const ends = connected();
        const [first, second] = [ends.keeper.encode(Buffer.from('one')), ends.keeper.encode(Buffer.from('two'))];
        const delivered = ends.worker.push(first).map(String);
        try {
          // The bytes may be an incomplete message. Then the next messages are parts of it.
          for (const piece of [bytes, second, first]) delivered.push(...ends.worker.push(piece).map(String));
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
        const expected = bytes.length === 0 ? ['one', 'two'] : ['one'];
        expect(delivered).toEqual(expected);
      },
      { numRuns: 200 },
    );
  });

  test('deliver nothing after a message was left out', () => {
    const { worker, keeper } = connected();
    keeper.encode(Buffer.from('one'));
    expect(() => receive(worker, [keeper.encode(Buffer.from('two'))])).toThrow();
  });

  test('keep no more of an incomplete message than its bytes', () => {
    const decoder = new MessageDecoder();
    expect(decoder.next(Uint8Array.of(0xff))).toBeUndefined();
    expect(decoder.next(Uint8Array.of(0xff, 1, 2))).toBeUndefined();
    const message = decoder.next(new Uint8Array(65_536))?.message;
    expect(message?.length).toBe(65_535);
    expect(message?.subarray(0, 3)).toEqual(Buffer.from([1, 2, 0]));
  });
});

describe('the handshake of a connection, for any bytes', () => {
  test('is done only by the reply of a keeper with its keys', () => {
    const valid = [Buffer.alloc(50), encodeMessage(Buffer.alloc(48, 9)), encodeMessage(randomBytes(48))];
    fuzzBytes(
      valid,
      (bytes) => {
        const initiator = new LinkInitiator({ privateKey, psk });
        let done: unknown;
        try {
          done = initiator.push(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
        expect(done).toBeUndefined();
      },
      { numRuns: 200 },
    );
  });

  test('passes on the bytes that follow the reply', () => {
    const initiator = new LinkInitiator({ privateKey, psk });
    const { reply } = new NoiseResponder({ publicKey, psk }).reply(initiator.opening.subarray(2));
    const onWire = Buffer.concat([encodeMessage(reply), Buffer.from('more')]);
    expect(initiator.push(onWire.subarray(0, 20))).toBeUndefined();
    expect(Buffer.from(initiator.push(onWire.subarray(20))?.rest ?? []).toString()).toBe('more');
  });
});
