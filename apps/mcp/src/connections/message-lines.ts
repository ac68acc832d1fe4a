import { Transform, type TransformCallback } from 'node:stream';
import { parseJSONRPCMessage } from '@modelcontextprotocol/server';

// The transport of the MCP library drops a line that is no message: its sender would wait for a reply for ever.

/** A reply to a line that is no message. */
export interface LineRefusal {
  jsonrpc: '2.0';
  id: string | number | null;
  error: { code: number; message: string };
}

const NO_JSON: LineRefusal['error'] = {
  code: -32_700,
  message: 'A line is not JSON. Send each message as one object of JSON on a line of its own.',
};
const NO_MESSAGE: LineRefusal['error'] = {
  code: -32_600,
  message:
    'A line is not a message of JSON-RPC 2.0. Send one request, notification or response on each line, without batches.',
};

const LINE_FEED = 10;

/**
 * Passes on the lines that are messages of JSON-RPC, and calls `refuse` with the reply to each other one. Blank lines
 * are dropped. What has more than `mostBytes` without a line feed is passed on too: the transport then ends the
 * connection.
 */
export class MessageLines extends Transform {
  readonly #refuse: (refusal: LineRefusal) => void;
  readonly #mostBytes: number;
  #begun: Buffer[] = [];
  #bytes = 0;

  constructor(mostBytes: number, refuse: (refusal: LineRefusal) => void) {
    super();
    this.#mostBytes = mostBytes;
    this.#refuse = refuse;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      this.#add(chunk.subarray(from, end + 1));
      from = end + 1;
      this.#end();
    }
    this.#add(chunk.subarray(from));
    if (this.#bytes > this.#mostBytes) this.push(this.#take());
    done();
  }

  #add(piece: Buffer): void {
    this.#begun.push(piece);
    this.#bytes += piece.byteLength;
  }

  #take(): Buffer {
    const taken = Buffer.concat(this.#begun);
    this.#begun = [];
    this.#bytes = 0;
    return taken;
  }

  #end(): void {
    const line = this.#take();
    const text = line.toString().trim();
    if (text === '') return;
    const refusal = line.byteLength > this.#mostBytes ? undefined : refusalOf(text);
    if (refusal === undefined) this.push(line);
    else this.#refuse(refusal);
  }
}

/** Returns the reply to a line that is no message. */
function refusalOf(text: string): LineRefusal | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { jsonrpc: '2.0', id: null, error: NO_JSON };
  }
  try {
    parseJSONRPCMessage(value);
    return undefined;
  } catch {
    return { jsonrpc: '2.0', id: idOf(value), error: NO_MESSAGE };
  }
}

/** Returns the id of a request. That of a response is one of ours, to which no reply belongs. */
function idOf(value: unknown): string | number | null {
  const { id, method } = (value ?? {}) as { id?: unknown; method?: unknown };
  return method !== undefined && (typeof id === 'string' || typeof id === 'number') ? id : null;
}
