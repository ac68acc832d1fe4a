import { TAG_BYTES } from './cipher.ts';
import { Initiator, type InitiatorKeys } from './initiator.ts';
import { encodeMessage, LinkMessages, MessageDecoder } from './link-messages.ts';
import { KEY_BYTES } from './x25519.ts';

/** Bytes that both ends hash first, so that no other protocol's messages fit. */
export const LINK_PROLOGUE: Uint8Array = new TextEncoder().encode('shellfleet keeper link 1');
const REPLY_BYTES = KEY_BYTES + TAG_BYTES;
const NO_PAYLOAD = new Uint8Array(0);

/** The worker's end of one connection to a keeper that listens, until the handshake is done. */
export class LinkInitiator {
  /** Bytes that begin the connection. */
  readonly opening: Buffer;
  readonly #initiator: Initiator;
  readonly #decoder = new MessageDecoder();

  constructor(keys: InitiatorKeys) {
    this.#initiator = new Initiator(keys, LINK_PROLOGUE);
    this.opening = encodeMessage(this.#initiator.begin(NO_PAYLOAD));
  }

  /**
   * Takes received bytes. Once the reply is complete, returns the codec of all later messages, and the bytes that
   * follow the reply. Throws if it is not that of a keeper with the same psk and this worker's public key.
   */
  push(input: Uint8Array): { messages: LinkMessages; rest: Uint8Array } | undefined {
    const reply = this.#decoder.next(input);
    if (reply === undefined) return undefined;
    if (reply.message.length !== REPLY_BYTES) throw new Error(`a reply of ${reply.message.length} bytes`);
    const ciphers = this.#initiator.finish(reply.message);
    return { messages: new LinkMessages(ciphers), rest: reply.rest };
  }
}
