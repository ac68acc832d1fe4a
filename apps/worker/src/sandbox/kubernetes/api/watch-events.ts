import type { IncomingMessage } from 'node:http';
import { tryJson } from '@shellfleet/protocol';
import { z } from 'zod';
import { ApiRefusal, ApiUnreachable, statusSchema } from './api-errors.ts';

export type WatchEvent<T> =
  | { type: 'present' | 'gone'; object: T }
  /** Version up to which the watch has sent everything. */
  | { type: 'bookmark'; resourceVersion: string };

/** Most characters of one event. A server stores no object over 1.5 MB. */
const LONGEST_EVENT = 8 * 2 ** 20;

const bookmarkSchema = z.object({ metadata: z.object({ resourceVersion: z.string() }) });
const eventSchema = z.object({
  type: z.enum(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']),
  object: z.unknown(),
});

/** Reads the events of a watch, one in each line. Ends a connection that is silent for `idleTimeoutMs`. */
export async function* readEvents<T>(
  response: IncomingMessage,
  schema: z.ZodType<T>,
  idleTimeoutMs: number,
): AsyncGenerator<WatchEvent<T>> {
  const silent = new ApiUnreachable(`the watch was silent for ${idleTimeoutMs} ms`);
  const idle = setTimeout(() => response.destroy(silent), idleTimeoutMs);
  let rest = '';
  try {
    response.setEncoding('utf8');
    for await (const chunk of response) {
      idle.refresh();
      const lines = (rest + chunk).split('\n');
      // A line that the end of the connection cuts off is sent again by the next watch.
      rest = lines.pop() ?? '';
      if (rest.length > LONGEST_EVENT) throw new ApiUnreachable('an event of the watch is too long');
      for (const line of lines) if (line !== '') yield toEvent(line, schema);
    }
  } finally {
    clearTimeout(idle);
    response.destroy();
  }
}

/** Returns the event of a line. Throws the error of the server that the line reports. */
function toEvent<T>(line: string, schema: z.ZodType<T>): WatchEvent<T> {
  const { type, object } = parseAs(eventSchema, tryJson(line));
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { type: 'present', object: parseAs(schema, object) };
    case 'DELETED':
      return { type: 'gone', object: parseAs(schema, object) };
    case 'BOOKMARK':
      return { type: 'bookmark', resourceVersion: parseAs(bookmarkSchema, object).metadata.resourceVersion };
    case 'ERROR': {
      const status = parseAs(statusSchema, object);
      throw new ApiRefusal(status.code ?? 500, status);
    }
  }
}

function parseAs<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (error) throw new ApiUnreachable(`an event of the watch cannot be read: ${z.prettifyError(error)}`);
  return data as T;
}
