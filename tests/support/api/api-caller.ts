/** One event of a stream, as a client gets it. */
export interface ReceivedEvent {
  id: string | undefined;
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tests read fields of many types of events.
  data: any;
}

interface CallOptions {
  headers?: Record<string, string>;
  /** Body as JSON, or as bytes. */
  body?: unknown;
  signal?: AbortSignal;
}

/** A client of the HTTP API with one key. */
export class ApiCaller {
  readonly url: string;
  readonly key: string;

  constructor(url: string, key: string) {
    this.url = url;
    this.key = key;
  }

  /** Sends a request to a path below `/v1`. */
  send(method: string, path: string, { headers, body, signal }: CallOptions = {}): Promise<Response> {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
    const type = isRaw ? 'application/octet-stream' : 'application/json';
    return fetch(`${this.url}/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body === undefined ? {} : { 'content-type': type }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: (isRaw ? body : JSON.stringify(body)) as string }),
      ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
      ...(signal === undefined ? {} : { signal }),
    } as RequestInit);
  }

  /** Sends a request, and returns the status and the JSON of its reply. */
  // biome-ignore lint/suspicious/noExplicitAny: the tests read fields of many types of replies.
  async call(method: string, path: string, options?: CallOptions): Promise<{ status: number; json: any }> {
    const reply = await this.send(method, path, options);
    const text = await reply.text();
    return { status: reply.status, json: text === '' ? undefined : JSON.parse(text) };
  }

  /** Yields the events of a stream until it ends. */
  async *events(path: string, lastEventId?: string, signal?: AbortSignal): AsyncGenerator<ReceivedEvent> {
    const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const reply = await this.send('GET', path, { headers, ...(signal === undefined ? {} : { signal }) });
    if (reply.status === 204) return;
    if (reply.status !== 200 || reply.body === null) throw new Error(`${reply.status}: ${await reply.text()}`);
    let text = '';
    for await (const piece of reply.body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = toEvent(block);
        if (event !== undefined) yield event;
      }
    }
  }
}

function toEvent(block: string): ReceivedEvent | undefined {
  const fields = Object.fromEntries(
    block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  );
  if (fields.data === undefined) return undefined;
  return { id: fields.id, type: fields.event ?? '', data: JSON.parse(fields.data) };
}

/** Returns the bytes of the output in events. */
export function outputOf(events: readonly ReceivedEvent[], stream = 'stdout'): Buffer {
  const pieces = events.filter(({ type, data }) => type === 'command.output' && data.stream === stream);
  return Buffer.concat(pieces.map(({ data }) => Buffer.from(data.data, data.encoding)));
}
