// The symmetric half of a Noise handshake (The Noise Protocol Framework, revision 34, section 5.2) with SHA-256 and
// ChaChaPoly. Names of methods are those of the specification.
import { createHash, hkdfSync } from 'node:crypto';
import { Cipher, TAG_BYTES } from './cipher.ts';

const HASH_BYTES = 32;
const NOTHING = new Uint8Array(0);

export class SymmetricState {
  #hash: Buffer;
  #chainingKey: Buffer;
  #cipher: Cipher | undefined;

  /** `protocol` is longer than a hash, so that its hash begins the handshake. */
  constructor(protocol: string) {
    this.#hash = createHash('sha256').update(protocol).digest();
    this.#chainingKey = this.#hash;
  }

  /** Hash of everything that both ends have sent. Equal at both ends of a finished handshake. */
  get handshakeHash(): Buffer {
    return this.#hash;
  }

  mixHash(data: Uint8Array): void {
    this.#hash = createHash('sha256').update(this.#hash).update(data).digest();
  }

  mixKey(secret: Uint8Array): void {
    const [chainingKey, key] = this.#derive(secret, 2);
    this.#chainingKey = chainingKey!;
    this.#cipher = new Cipher(key!);
  }

  mixKeyAndHash(secret: Uint8Array): void {
    const [chainingKey, hash, key] = this.#derive(secret, 3);
    this.#chainingKey = chainingKey!;
    this.mixHash(hash!);
    this.#cipher = new Cipher(key!);
  }

  encryptAndHash(plain: Uint8Array): Buffer {
    const message = Buffer.alloc(plain.length + TAG_BYTES);
    this.#keyed().encryptInto(message, plain, this.#hash);
    this.mixHash(message);
    return message;
  }

  decryptAndHash(message: Uint8Array): Buffer {
    const plain = this.#keyed().decrypt(message, this.#hash);
    this.mixHash(message);
    return plain;
  }

  /** Returns the ciphers of the two directions, that of the initiator's messages first. */
  split(): [initiator: Cipher, responder: Cipher] {
    const [initiator, responder] = this.#derive(NOTHING, 2);
    return [new Cipher(initiator!), new Cipher(responder!)];
  }

  #keyed(): Cipher {
    if (this.#cipher === undefined) throw new Error('no key was mixed in yet');
    return this.#cipher;
  }

  /** Returns keys of HKDF, whose salt is the chaining key. */
  #derive(secret: Uint8Array, count: number): Buffer[] {
    const bytes = Buffer.from(hkdfSync('sha256', secret, this.#chainingKey, NOTHING, count * HASH_BYTES));
    return Array.from({ length: count }, (_, i) => bytes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES));
  }
}
