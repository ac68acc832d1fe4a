// The worker's half of the handshake with a keeper that listens. Both messages together take one round trip:
//   -> psk, e      proves that the worker has the psk
//   <- e, ee, se   proves that the keeper has the psk and the public key of the worker
// Only the owner of the private key can continue after the second message.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { Cipher } from './cipher.ts';
import { SymmetricState } from './symmetric-state.ts';
import { KEY_BYTES, sharedSecret, toPublicBytes } from './x25519.ts';

export const NOISE_PROTOCOL = 'Noise_KNpsk0_25519_ChaChaPoly_SHA256';
const PSK_BYTES = 32;

export interface InitiatorKeys {
  /** X25519 key whose public half the other end has. */
  privateKey: KeyObject;
  /** Secret of both ends: 32 bytes. */
  psk: Uint8Array;
}

export interface FinishedHandshake {
  payload: Buffer;
  send: Cipher;
  receive: Cipher;
  /** Equal at both ends. */
  handshakeHash: Buffer;
}

export class Initiator {
  readonly #keys: InitiatorKeys;
  readonly #ephemeral: KeyObject;
  readonly #state = new SymmetricState(NOISE_PROTOCOL);

  /** `ephemeral` is given only by tests with fixed keys. */
  constructor(keys: InitiatorKeys, prologue: Uint8Array, ephemeral = generateKeyPairSync('x25519').privateKey) {
    if (keys.psk.length !== PSK_BYTES) throw new RangeError(`a psk has ${PSK_BYTES} bytes, not ${keys.psk.length}`);
    this.#keys = keys;
    this.#ephemeral = ephemeral;
    this.#state.mixHash(prologue);
    this.#state.mixHash(toPublicBytes(keys.privateKey));
  }

  /** Returns the first message. Called once. */
  begin(payload: Uint8Array): Buffer {
    const e = toPublicBytes(this.#ephemeral);
    this.#state.mixKeyAndHash(this.#keys.psk);
    this.#state.mixHash(e);
    this.#state.mixKey(e);
    return Buffer.concat([e, this.#state.encryptAndHash(payload)]);
  }

  /** Reads the second message. Throws if its sender lacks the psk or the public key, or if it was changed. */
  finish(message: Uint8Array): FinishedHandshake {
    const e = message.subarray(0, KEY_BYTES);
    this.#state.mixHash(e);
    this.#state.mixKey(e);
    this.#state.mixKey(sharedSecret(this.#ephemeral, e));
    this.#state.mixKey(sharedSecret(this.#keys.privateKey, e));
    const payload = this.#state.decryptAndHash(message.subarray(KEY_BYTES));
    const [send, receive] = this.#state.split();
    return { payload, send, receive, handshakeHash: this.#state.handshakeHash };
  }
}
