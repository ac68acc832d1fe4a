import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request as open } from 'node:https';
import { createInterface } from 'node:readline';

/** Where requests go, and with which token. */
export interface Caller {
  server: { url: string };
  caFile: string;
  token?: string;
}

export interface Reply {
  code: number;
  headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: tests compare whole bodies.
  body: any;
}

/** Sends a request, and returns the reply with its body as JSON where it is. */
export async function ask(
  caller: Caller,
  method: string,
  path: string,
  body?: object | string,
  contentType = 'application/json',
): Promise<Reply> {
  const response = await send(caller, { method, path, body, contentType });
  const text = Buffer.concat(await response.toArray()).toString();
  const isJson = response.headers['content-type']?.includes('json');
  return { code: response.statusCode ?? 0, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

export interface WatchEvent {
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests compare whole objects.
  object: any;
}

/** Opens a watch, and returns its events. The stream ends with the connection; `return()` of the iterator closes it. */
export async function* watch(caller: Caller, path: string): AsyncGenerator<WatchEvent, void> {
  const response = await send(caller, { method: 'GET', path, contentType: 'application/json' });
  try {
    for await (const line of createInterface({ input: response })) yield JSON.parse(line);
  } finally {
    response.destroy();
  }
}

interface Outgoing {
  method: string;
  path: string;
  body?: object | string | undefined;
  contentType: string;
}

function send({ server, caFile, token }: Caller, { method, path, body, contentType }: Outgoing) {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const headers = {
    ...(token && { authorization: `Bearer ${token}` }),
    'content-type': contentType,
    // Node gives a DELETE neither a length nor chunks by itself.
    ...(text !== undefined && { 'content-length': String(Buffer.byteLength(text)) }),
  };
  return new Promise<IncomingMessage>((resolve, reject) => {
    const request = open(new URL(path, server.url), { method, headers, ca: readFileSync(caFile), agent: false });
    request.once('response', resolve);
    request.once('error', reject);
    request.end(text);
  });
}
