import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { tryJson } from '@shellfleet/protocol';
import { z } from 'zod';
import { ApiRefusal, ApiUnreachable, isExpired, isUnauthorized, toRefusal } from './api-errors.ts';
import { type ApiSettings, Credentials } from './credentials.ts';
import { readEvents, type WatchEvent } from './watch-events.ts';

// A client of the API server for the objects of one namespace: five verbs and a watch (docs/adr/0044). Only the fields
// that a caller's schema names are kept.
//
// API-1. Every call ends: with the server's reply, or at its deadline. What it keeps of replies is bounded.
// API-2. A call that the server refused with a time to wait is repeated after that time, and one that it refused for
//        an old token is repeated once with the token that is in the file.

const CALL_TIMEOUT_MS = 30_000;
/** Longest silence of a watch. A server sends a bookmark about every minute. */
const IDLE_TIMEOUT_MS = 150_000;
/** Time after which the server ends a watch, if nothing else does. */
const WATCH_SECONDS = 300;
const PAGE_SIZE = 500;
/** Most bytes of a reply. A server stores no object over 1.5 MB, and 500 Pods of usual size are 5 MB. */
const MOST_BYTES = 64 * 2 ** 20;
/** Most objects of a list. A fleet has some thousand Pods. */
const MOST_OBJECTS = 50_000;
const JSON_TYPE = 'application/json';

export interface ApiResource {
  /** Path of the group and version: `/api/v1`, `/apis/coordination.k8s.io/v1`. */
  group: string;
  plural: string;
}

export interface ApiBounds {
  callTimeoutMs?: number;
  idleTimeoutMs?: number;
  mostBytes?: number;
  mostObjects?: number;
}

export interface ApiList<T> {
  items: T[];
  /** Version from which a watch sees every later change of the list. */
  resourceVersion: string;
}

interface Call {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  body?: unknown;
  contentType?: string;
  signal?: AbortSignal | undefined;
}

const pageSchema = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(z.unknown()).nullable(),
});

export class ApiClient {
  readonly #server: URL;
  readonly #namespace: string;
  readonly #credentials: Credentials;
  readonly #bounds: Required<ApiBounds>;

  constructor(settings: ApiSettings, namespace: string, bounds: ApiBounds = {}) {
    this.#server = new URL(settings.server);
    this.#namespace = namespace;
    this.#credentials = new Credentials(settings);
    const times = { callTimeoutMs: CALL_TIMEOUT_MS, idleTimeoutMs: IDLE_TIMEOUT_MS };
    this.#bounds = { ...times, mostBytes: MOST_BYTES, mostObjects: MOST_OBJECTS, ...bounds };
  }

  create<T>(resource: ApiResource, body: unknown, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T> {
    return this.#callFor(schema, { method: 'POST', path: this.#path(resource), body, signal });
  }

  get<T>(resource: ApiResource, name: string, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T> {
    return this.#callFor(schema, { method: 'GET', path: this.#path(resource, name), signal });
  }

  /** Applies a merge patch. One that contains `metadata.resourceVersion` is refused with 409 after another change. */
  patch<T>(resource: ApiResource, name: string, body: unknown, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T> {
    const contentType = 'application/merge-patch+json';
    return this.#callFor(schema, { method: 'PATCH', path: this.#path(resource, name), body, contentType, signal });
  }

  /** Deletes the object, with these options of the API, such as `gracePeriodSeconds` and `preconditions.uid`. */
  async delete(resource: ApiResource, name: string, body: object = {}, signal?: AbortSignal): Promise<void> {
    await this.#call({ method: 'DELETE', path: this.#path(resource, name), body, signal });
  }

  /** Lists all objects with the labels, page by page. */
  async list<T>(
    resource: ApiResource,
    labelSelector: string,
    schema: z.ZodType<T>,
    signal?: AbortSignal,
  ): Promise<ApiList<T>> {
    const items: T[] = [];
    for (let next: string | undefined; ; ) {
      const query = { labelSelector, limit: String(PAGE_SIZE), ...(next === undefined ? {} : { continue: next }) };
      const path = `${this.#path(resource)}?${new URLSearchParams(query)}`;
      try {
        const page = await this.#callFor(pageSchema, { method: 'GET', path, signal });
        for (const item of page.items ?? []) items.push(parse(schema, item));
        const { mostObjects } = this.#bounds;
        if (items.length > mostObjects) throw new ApiUnreachable(`a list has over ${mostObjects} objects`);
        const { resourceVersion, continue: more } = page.metadata;
        if (!more) return { items, resourceVersion };
        next = more;
      } catch (error) {
        if (next === undefined || !isExpired(error)) throw error;
        items.length = 0;
        next = undefined;
      }
    }
  }

  /**
   * Opens a watch of everything that changes after the version. Its events end with the connection, and throw when the
   * connection breaks, is silent for too long or carries an error of the server.
   */
  async watch<T>(
    resource: ApiResource,
    labelSelector: string,
    resourceVersion: string,
    schema: z.ZodType<T>,
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent<T>>> {
    const query = { labelSelector, resourceVersion, watch: '1', allowWatchBookmarks: 'true' };
    const timeoutSeconds = String(Math.round(WATCH_SECONDS * (1 + Math.random())));
    const path = `${this.#path(resource)}?${new URLSearchParams({ ...query, timeoutSeconds })}`;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(this.#tooLate()), this.#bounds.callTimeoutMs);
    try {
      const response = await this.#open({ method: 'GET', path }, AbortSignal.any([signal, late.signal]));
      return readEvents(response, schema, this.#bounds.idleTimeoutMs);
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#credentials.close();
  }

  #path({ group, plural }: ApiResource, name?: string): string {
    return `${group}/namespaces/${this.#namespace}/${plural}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`;
  }

  async #callFor<T>(schema: z.ZodType<T>, call: Call): Promise<T> {
    return parse(schema, tryJson(await this.#call(call)));
  }

  /** Makes the call, again while the server asks for that (API-2). */
  async #call(call: Call): Promise<string> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(this.#tooLate()), this.#bounds.callTimeoutMs);
    const signal = call.signal === undefined ? late.signal : AbortSignal.any([call.signal, late.signal]);
    let isTokenNew = false;
    try {
      for (;;) {
        try {
          return await readText(await this.#open(call, signal), this.#bounds.mostBytes);
        } catch (error) {
          if (!(error instanceof ApiRefusal)) signal.throwIfAborted();
          const isOldToken: boolean = isUnauthorized(error) && !isTokenNew;
          const waitMs = isOldToken ? 0 : repeatAfterMs(error);
          if (waitMs === undefined) throw error;
          if (isOldToken) this.#credentials.expire();
          isTokenNew ||= isOldToken;
          await delay(waitMs, undefined, { signal }).catch(() => {
            throw error;
          });
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends the request, and returns a reply of success. Throws ApiRefusal, ApiUnreachable or the signal's reason. */
  async #open(call: Call, signal: AbortSignal): Promise<IncomingMessage> {
    const { agent, headers } = await this.#credentials.use();
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
    const options = {
      ...{ agent, signal, method: call.method },
      headers: {
        ...{ ...headers, accept: JSON_TYPE, 'user-agent': 'shellfleet' },
        ...(body && { 'content-type': call.contentType ?? JSON_TYPE, 'content-length': body.length }),
      },
    };
    for (;;) {
      let wasReused = false;
      try {
        const response = await new Promise<IncomingMessage>((resolve, reject) => {
          const sent = request(new URL(call.path, this.#server), options, resolve);
          // A connection that breaks later reports that here too.
          sent.on('error', (error) => {
            wasReused = sent.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET';
            reject(error);
          });
          sent.end(body);
        });
        const { statusCode = 0 } = response;
        if (statusCode >= 200 && statusCode < 300) return response;
        throw toRefusal(statusCode, await readText(response, this.#bounds.mostBytes), response.headers['retry-after']);
      } catch (error) {
        if (error instanceof ApiRefusal || error instanceof ApiUnreachable) throw error;
        signal.throwIfAborted();
        // The server closed an idle connection while the request was sent.
        if (!wasReused) throw new ApiUnreachable((error as Error).message, { cause: error });
      }
    }
  }

  #tooLate(): ApiUnreachable {
    return new ApiUnreachable(`it took longer than ${this.#bounds.callTimeoutMs} ms`);
  }
}

/** Returns the time after which the server asks for another attempt: it is busy, or cannot serve now. */
function repeatAfterMs(error: unknown): number | undefined {
  if (!(error instanceof ApiRefusal)) return undefined;
  return error.statusCode === 429 || error.statusCode >= 500 ? error.retryAfterMs : undefined;
}

async function readText(response: IncomingMessage, mostBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > mostBytes) throw new Error(`it has over ${mostBytes} bytes`);
      chunks.push(chunk);
    }
  } catch (cause) {
    throw new ApiUnreachable(`the reply broke off: ${(cause as Error).message}`, { cause });
  }
  return Buffer.concat(chunks).toString();
}

function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (error) throw new ApiUnreachable(`the reply is not one of an API server: ${z.prettifyError(error)}`);
  return data as T;
}
