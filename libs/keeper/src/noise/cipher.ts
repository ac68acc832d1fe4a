import { createCipheriv, createDecipheriv } from 'node:crypto';
import { writeUint64 } from '../frames.ts';

const ALGORITHM = 'chacha20-poly1305';
const NONCE_BYTES = 12;
export const TAG_BYTES = 16;
const NO_DATA: Uint8Array = new Uint8Array(0);

/** One direction of an encrypted stream: a key, and the number of the next message. */
export class Cipher {
  readonly #key: Uint8Array;
  // No connection sends 2^53 messages, so a number is exact.
  #next = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Writes ciphertext and tag to `target`, from its beginning. */
  encryptInto(target: Uint8Array, plain: Uint8Array, authenticated = NO_DATA): void {
    const cipher = createCipheriv(ALGORITHM, this.#key, this.#nonce(), { authTagLength: TAG_BYTES });
    cipher.setAAD(authenticated, { plaintextLength: plain.length });
    target.set(cipher.update(plain));
    cipher.final();
    target.set(cipher.getAuthTag(), plain.length);
  }

  /** Returns the plain text. Throws for a message that is not the next one of the other end. */
  decrypt(message: Uint8Array, authenticated = NO_DATA): Buffer {
    const length = message.length - TAG_BYTES;
    if (length < 0) throw new Error('a message without a tag');
    const decipher = createDecipheriv(ALGORITHM, this.#key, this.#nonce(), { authTagLength: TAG_BYTES });
    decipher.setAAD(authenticated, { plaintextLength: length });
    decipher.setAuthTag(message.subarray(length));
    const plain = decipher.update(message.subarray(0, length));
    decipher.final();
    return plain;
  }

  #nonce(): Buffer {
    const nonce = Buffer.alloc(NONCE_BYTES);
    writeUint64(nonce, this.#next, NONCE_BYTES - 8);
    this.#next += 1;
    return nonce;
  }
}
