import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { NoiseForger, NoiseResponder, privateKeyFrom } from '../../test-support/index.ts';
import type { Cipher } from './cipher.ts';
import { Initiator } from './initiator.ts';
import { toPublicBytes } from './x25519.ts';

// Vector Noise_KNpsk0_25519_ChaChaPoly_SHA256 of cacophony (vectors/cacophony.txt, public domain), which the tests of
// snow also contain (tests/vectors/cacophony.txt at 8ac60f51).
const prologue = Buffer.from('John Galt');
const psk = Buffer.from('54686973206973206d7920417573747269616e20706572737065637469766521', 'hex');
const initiatorStatic = 'e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1';
const initiatorEphemeral = '893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a';
const responderEphemeral = 'bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b';
const publicKeyOfInitiator = '6bc3822a2aa7f4e6981d6538692b3cdf3e6df9eea6ed269eb41d93c22757b75a';
const handshakeHash = '6666957c410fa2026336015177f44403bd7c5fd95a9fcf73b0f927d9414a5e13';
const first = {
  payload: 'Ludwig von Mises',
  ciphertext:
    'ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c794469e82f47fb2e5671e5e44d634465df273dbf7a1d0ed734b411f43296848df7f3',
};
const second = {
  payload: 'Murray Rothbard',
  ciphertext:
    '95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843f2e5b764dff130f68c5b1d15333424f104db664b4776311720b2004425f38b',
};
const later = [
  ['initiator', 'F. A. Hayek', 'abbeaec8a2ee4fec6870d7726b3e785d810737e279e11d540d366d'],
  ['responder', 'Carl Menger', 'bcb937c3b10a3a2b030c103689234984ffc9ddd51fe7b489e50c21'],
  ['initiator', 'Jean-Baptiste Say', '4b1c740a4f02b543781e70355677e384ebdc9e85026d26cb61651407465400520c'],
  ['responder', 'Eugen Böhm von Bawerk', '76f58c735f964b7739a9da47ec06253de160387bd99bbb664716f984db0c38b571d8cfc614'],
] as const;

const keyOf = (hex: string) => privateKeyFrom(Buffer.from(hex, 'hex'));
const initiatorOfVector = () =>
  new Initiator({ privateKey: keyOf(initiatorStatic), psk }, prologue, keyOf(initiatorEphemeral));

function encrypt(cipher: Cipher, text: string): string {
  const plain = Buffer.from(text, 'latin1');
  const message = Buffer.alloc(plain.length + 16);
  cipher.encryptInto(message, plain);
  return message.toString('hex');
}

describe('a handshake', () => {
  test('has the messages, the hash and the ciphers of the public vector', () => {
    const initiator = initiatorOfVector();
    const responder = new NoiseResponder(
      { publicKey: Buffer.from(publicKeyOfInitiator, 'hex'), psk },
      { prologue, ephemeral: keyOf(responderEphemeral) },
    );
    const opening = initiator.begin(Buffer.from(first.payload));
    expect(opening.toString('hex')).toBe(first.ciphertext);
    const theirs = responder.reply(opening, Buffer.from(second.payload));
    expect(theirs.payload.toString()).toBe(first.payload);
    expect(theirs.reply.toString('hex')).toBe(second.ciphertext);
    const ours = initiator.finish(theirs.reply);
    expect(ours.payload.toString()).toBe(second.payload);
    expect(ours.handshakeHash.toString('hex')).toBe(handshakeHash);
    expect(theirs.handshakeHash.toString('hex')).toBe(handshakeHash);
    for (const [from, text, ciphertext] of later) {
      const [sender, receiver] = from === 'initiator' ? [ours, theirs] : [theirs, ours];
      expect(encrypt(sender.send, text)).toBe(ciphertext);
      expect(receiver.receive.decrypt(Buffer.from(ciphertext, 'hex')).toString('latin1')).toBe(text);
    }
  });

  test('derives the public key of the vector from its private key', () => {
    expect(toPublicBytes(keyOf(initiatorStatic)).toString('hex')).toBe(publicKeyOfInitiator);
  });

  test.each([
    ['psk', { psk: Buffer.alloc(32, 1) }],
    ['prologue', { prologue: Buffer.from('another') }],
    ['public key of the worker', { publicKey: toPublicBytes(generateKeyPairSync('x25519').privateKey) }],
  ])('fails at the keeper that has another %s', (_, change) => {
    const keys = { publicKey: Buffer.from(publicKeyOfInitiator, 'hex'), psk, prologue, ...change };
    const opening = initiatorOfVector().begin(new Uint8Array(0));
    expect(() => new NoiseResponder(keys, keys).reply(opening)).toThrow();
  });

  test('fails at the worker after a change of any byte of the reply', () => {
    const reply = Buffer.from(second.ciphertext, 'hex');
    for (let at = 0; at < reply.length; at += 1) {
      const changed = Buffer.from(reply);
      changed[at] = (changed[at] ?? 0) ^ 1;
      const initiator = initiatorOfVector();
      initiator.begin(Buffer.from(first.payload));
      expect(() => initiator.finish(changed), `byte ${at}`).toThrow();
    }
  });

  test('fails for a public key of low order, whose shared secret anybody knows', () => {
    const initiator = initiatorOfVector();
    initiator.begin(new Uint8Array(0));
    expect(() => initiator.finish(Buffer.alloc(48))).toThrow();
  });

  test('leaves a peer that has read the psk and the public key unable to continue', () => {
    const keys = { publicKey: Buffer.from(publicKeyOfInitiator, 'hex'), psk };
    const forger = new NoiseForger(keys, prologue);
    const keeper = new NoiseResponder(keys, { prologue }).reply(forger.opening);
    const { isReplyRead, send } = forger.continueAfter(keeper.reply);
    expect(isReplyRead).toBe(false);
    expect(() => keeper.receive.decrypt(Buffer.from(encrypt(send, 'claim'), 'hex'))).toThrow();
  });

  test('needs a psk of 32 bytes', () => {
    const { privateKey } = generateKeyPairSync('x25519');
    expect(() => new Initiator({ privateKey, psk: psk.subarray(1) }, prologue)).toThrow(RangeError);
  });
});
