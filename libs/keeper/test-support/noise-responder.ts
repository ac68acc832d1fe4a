// The keeper's half of the handshake, as the peer of the worker's half in tests.
import { generateKeyPairSync } from 'node:crypto';
import { type FinishedHandshake, NOISE_PROTOCOL } from '../src/noise/initiator.ts';
import { LINK_PROLOGUE } from '../src/noise/link-initiator.ts';
import { SymmetricState } from '../src/noise/symmetric-state.ts';
import { KEY_BYTES, sharedSecret, toPublicBytes } from '../src/noise/x25519.ts';

export interface ResponderKeys {
  /** Public key of the workers: 32 bytes. */
  publicKey: Uint8Array;
  psk: Uint8Array;
}

export class NoiseResponder {
  readonly #state = new SymmetricState(NOISE_PROTOCOL);
  readonly #keys: ResponderKeys;
  readonly #ephemeral;

  constructor(
    keys: ResponderKeys,
    { prologue = LINK_PROLOGUE, ephemeral = generateKeyPairSync('x25519').privateKey } = {},
  ) {
    this.#keys = keys;
    this.#ephemeral = ephemeral;
    this.#state.mixHash(prologue);
    this.#state.mixHash(keys.publicKey);
  }

  /** Reads the first message, and returns the second one and the ciphers. Throws if the psk is another one. */
  reply(message: Uint8Array, payload = new Uint8Array(0)): FinishedHandshake & { reply: Buffer } {
    const theirs = message.subarray(0, KEY_BYTES);
    this.#state.mixKeyAndHash(this.#keys.psk);
    this.#state.mixHash(theirs);
    this.#state.mixKey(theirs);
    const received = this.#state.decryptAndHash(message.subarray(KEY_BYTES));
    const ours = toPublicBytes(this.#ephemeral);
    this.#state.mixHash(ours);
    this.#state.mixKey(ours);
    this.#state.mixKey(sharedSecret(this.#ephemeral, theirs));
    this.#state.mixKey(sharedSecret(this.#ephemeral, this.#keys.publicKey));
    const reply = Buffer.concat([ours, this.#state.encryptAndHash(payload)]);
    const [receive, send] = this.#state.split();
    return { reply, payload: received, send, receive, handshakeHash: this.#state.handshakeHash };
  }
}
