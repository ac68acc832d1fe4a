// The stream of frames on its way through an encrypted connection: it is cut into messages of Noise, each with its
// length before it.
//
// NOISE-1. A message that is not exactly the next one of the other end ends the connection: push() throws, and the
//           object must not be used again. No byte of such a message is delivered.
// NOISE-2. Received bytes are kept only until their message is complete: at most 65,537.
import { type Cipher, TAG_BYTES } from './cipher.ts';

const LENGTH_BYTES = 2;
const MAX_MESSAGE_BYTES = 0xffff;
/** Most bytes of the stream in one message. */
const MAX_PLAIN_BYTES = MAX_MESSAGE_BYTES - TAG_BYTES;

/** Cuts received bytes into messages. */
export class MessageDecoder {
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;

  /**
   * Returns the next message and the bytes after it, or undefined if there is none yet. The message is valid until the
   * next call.
   */
  next(input: Uint8Array): { message: Buffer; rest: Uint8Array } | undefined {
    const afterLength = this.#fill(input, LENGTH_BYTES);
    if (this.#length < LENGTH_BYTES) return undefined;
    const end = LENGTH_BYTES + this.#bytes.readUInt16BE(0);
    const rest = this.#fill(afterLength, end);
    if (this.#length < end) return undefined;
    this.#length = 0;
    return { message: this.#bytes.subarray(LENGTH_BYTES, end), rest };
  }

  /** Releases the memory of the last message if no other one has begun. */
  trim(): void {
    if (this.#length === 0) this.#bytes = Buffer.alloc(0);
  }

  /** Takes bytes until there are `wanted`. Returns the other ones. */
  #fill(input: Uint8Array, wanted: number): Uint8Array {
    const missing = wanted - this.#length;
    if (missing <= 0) return input;
    if (this.#bytes.length < wanted) {
      // One buffer serves all messages of a flood. It has the size of the message, since most messages are small.
      const larger = Buffer.allocUnsafeSlow(wanted);
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    const taken = input.subarray(0, missing);
    this.#bytes.set(taken, this.#length);
    this.#length += taken.length;
    return input.subarray(taken.length);
  }
}

/** The two directions of an encrypted connection. */
export class LinkMessages {
  readonly #send: Cipher;
  readonly #receive: Cipher;
  readonly #decoder = new MessageDecoder();

  constructor({ send, receive }: { send: Cipher; receive: Cipher }) {
    this.#send = send;
    this.#receive = receive;
  }

  /** Returns the messages that carry the bytes. */
  encode(plain: Uint8Array): Buffer {
    const count = Math.ceil(plain.length / MAX_PLAIN_BYTES);
    const messages = Buffer.allocUnsafe(plain.length + count * (LENGTH_BYTES + TAG_BYTES));
    let end = 0;
    for (let at = 0; at < plain.length; at += MAX_PLAIN_BYTES) {
      const piece = plain.subarray(at, at + MAX_PLAIN_BYTES);
      const length = piece.length + TAG_BYTES;
      messages.writeUInt16BE(length, end);
      this.#send.encryptInto(messages.subarray(end + LENGTH_BYTES), piece);
      end += LENGTH_BYTES + length;
    }
    return messages;
  }

  /** Returns the bytes of each complete message (NOISE-1). They are the receiver's own. */
  push(input: Uint8Array): Buffer[] {
    const pieces: Buffer[] = [];
    let rest = input;
    for (let next = this.#decoder.next(rest); next !== undefined; next = this.#decoder.next(rest)) {
      rest = next.rest;
      const plain = this.#receive.decrypt(next.message);
      if (plain.length > 0) pieces.push(plain);
    }
    this.#decoder.trim();
    return pieces;
  }
}

export function encodeMessage(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(LENGTH_BYTES + message.length);
  bytes.writeUInt16BE(message.length);
  bytes.set(message, LENGTH_BYTES);
  return bytes;
}
