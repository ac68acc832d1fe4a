import { createHash } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import type { ApiCaller } from './api-caller.ts';

const END_OF_EVENT = '\n\n';
const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });

/** A reader of a stream of events that keeps only their digest, so that a thousand of them cost little. */
export class EventReader {
  readonly #caller: Pick<ApiCaller, 'url' | 'key'>;
  readonly #path: string;
  readonly #hash = createHash('sha1');
  readonly #onEvent: (event: Buffer) => void;
  #rest = Buffer.alloc(0);
  /** Events that arrived whole. */
  events = 0;
  bytes = 0;
  #lastId: string | undefined;

  constructor(caller: Pick<ApiCaller, 'url' | 'key'>, path: string, onEvent: (event: Buffer) => void = () => {}) {
    this.#caller = caller;
    this.#path = path;
    this.#onEvent = onEvent;
  }

  /** Digest of all events, in their order. */
  get digest(): string {
    return this.#hash.copy().digest('hex');
  }

  /** Opens the stream behind the last event. Resolves with the reply, of which nothing is read yet. */
  open(): Promise<IncomingMessage> {
    const { url, key } = this.#caller;
    const headers = {
      authorization: `Bearer ${key}`,
      ...(this.#lastId === undefined ? {} : { 'last-event-id': this.#lastId }),
    };
    return new Promise((resolve, reject) => {
      request(`${url}/v1${this.#path}`, { headers, agent }, (reply) => {
        // 204: there is nothing behind the last event.
        if (reply.statusCode === 200 || reply.statusCode === 204) resolve(reply);
        else reject(new Error(`The stream has the status ${reply.statusCode}.`));
      })
        .once('error', reject)
        .end();
    });
  }

  /** Reads to the end, or leaves after this number of events. A part of an event is then forgotten. */
  async read(reply: IncomingMessage, events = Number.POSITIVE_INFINITY): Promise<void> {
    this.#rest = Buffer.alloc(0);
    const until = this.events + events;
    for await (const piece of reply) {
      this.#add(piece as Buffer);
      if (this.events >= until) return;
    }
  }

  #add(piece: Buffer): void {
    const text = this.#rest.byteLength === 0 ? piece : Buffer.concat([this.#rest, piece]);
    let from = 0;
    for (let end = text.indexOf(END_OF_EVENT); end >= 0; end = text.indexOf(END_OF_EVENT, from)) {
      this.#addEvent(text.subarray(from, end));
      from = end + END_OF_EVENT.length;
    }
    this.#rest = Buffer.from(text.subarray(from));
  }

  #addEvent(event: Buffer): void {
    const id = /^id: (.+)\n/.exec(event.toString('latin1', 0, 64))?.[1];
    if (id === undefined) return;
    this.#lastId = id;
    this.#hash.update(event);
    this.events++;
    this.bytes += event.byteLength;
    this.#onEvent(event);
  }
}
