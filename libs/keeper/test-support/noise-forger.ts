// What somebody can do who has read the environment of a keeper that listens: the psk and the public key of workers.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { Cipher } from '../src/noise/cipher.ts';
import { NOISE_PROTOCOL } from '../src/noise/initiator.ts';
import { LINK_PROLOGUE } from '../src/noise/link-initiator.ts';
import { encodeMessage, LinkMessages } from '../src/noise/link-messages.ts';
import { SymmetricState } from '../src/noise/symmetric-state.ts';
import { KEY_BYTES, sharedSecret, toPublicBytes } from '../src/noise/x25519.ts';
import type { ResponderKeys } from './noise-responder.ts';

export class NoiseForger {
  /** First message, which is authentic: it needs no private key. */
  readonly opening: Buffer;
  readonly #state = new SymmetricState(NOISE_PROTOCOL);
  readonly #ephemeral: KeyObject = generateKeyPairSync('x25519').privateKey;

  constructor({ publicKey, psk }: ResponderKeys, prologue = LINK_PROLOGUE) {
    const ours = toPublicBytes(this.#ephemeral);
    this.#state.mixHash(prologue);
    this.#state.mixHash(publicKey);
    this.#state.mixKeyAndHash(psk);
    this.#state.mixHash(ours);
    this.#state.mixKey(ours);
    this.opening = Buffer.concat([ours, this.#state.encryptAndHash(new Uint8Array(0))]);
  }

  /** Tries to go on after the reply, with a private key of its own where that of the workers is needed. */
  continueAfter(reply: Uint8Array): { isReplyRead: boolean; send: Cipher; receive: Cipher } {
    const theirs = reply.subarray(0, KEY_BYTES);
    this.#state.mixHash(theirs);
    this.#state.mixKey(theirs);
    this.#state.mixKey(sharedSecret(this.#ephemeral, theirs));
    this.#state.mixKey(sharedSecret(generateKeyPairSync('x25519').privateKey, theirs));
    let isReplyRead = true;
    try {
      this.#state.decryptAndHash(reply.subarray(KEY_BYTES));
    } catch {
      isReplyRead = false;
    }
    const [send, receive] = this.#state.split();
    return { isReplyRead, send, receive };
  }
}

/** Returns the bytes on the wire: of the first message, and of a frame after the reply. */
export const forgedOpening = (forger: NoiseForger): Buffer => encodeMessage(forger.opening);
export const forgedFrame = (forger: NoiseForger, reply: Uint8Array, frame: Uint8Array): Buffer =>
  new LinkMessages(forger.continueAfter(reply)).encode(frame);
