import { sessionIdSchema } from '@shellfleet/protocol';
import { z } from 'zod';

// Parts of requests that several routes have.

const LONGEST_WAIT_S = 300;
const MOST_ITEMS = 500;
const USUAL_ITEMS = 100;

export const sessionPart = { id: sessionIdSchema.meta({ description: 'Id of the session.' }) };
export const commandPart = { id: z.string().min(1).max(512).describe('Id of the command.') };

/** A switch of the query: present without a value, or `true`. */
export const flag = (text: string) =>
  z
    .enum(['', 'true', 'false'], "must be 'true' or 'false'")
    .optional()
    .transform((value) => value === '' || value === 'true')
    .meta({ description: text });

/** Seconds in `Prefer: wait=…`, as milliseconds, in every form of RFC 7240. Other preferences are ignored. */
export const prefer = z
  .string()
  .optional()
  .transform((text) => {
    const seconds = /(?:^|[,;\s])wait\s*=\s*("?)(\d{1,6})\1(?:$|[,;\s])/i.exec(text ?? '')?.[2];
    return seconds === undefined ? undefined : Math.min(Number(seconds), LONGEST_WAIT_S) * 1_000;
  })
  .meta({ description: `\`wait=N\`: waits up to N seconds for the end, at most ${LONGEST_WAIT_S}.` });

/** The place in a stream after which a client resumes. Another one is refused before the stream begins. */
export function resumingAfter(ids: RegExp) {
  const id = z.string().regex(ids, 'must be the id of an event of this stream').optional();
  return {
    headers: { 'last-event-id': id.describe('Id of the last event that arrived.') },
    query: { after: id.describe('The same as `Last-Event-ID`, which has precedence.') },
  };
}

export const page = {
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(MOST_ITEMS, `must be at most ${MOST_ITEMS}`)
    .default(USUAL_ITEMS)
    .meta({ description: 'Most items of the page.' }),
  cursor: z.string().max(512).default('').meta({ description: '`next` of the page before.' }),
};

/** Returns the schema of one page of a list. */
export const pageOf = (item: z.ZodType) =>
  z.object({
    items: z.array(item),
    next: z.string().optional().describe('Cursor of the next page. Absent on the last one.'),
  });

/** Reads one page. `read` yields the items after a cursor, in the order of their keys. */
export async function toPage<T>(
  { limit, cursor }: { limit: number; cursor: string },
  read: (after: string) => AsyncIterable<T> | Iterable<T>,
  keyOf: (item: T) => string,
): Promise<{ items: T[]; next?: string }> {
  const items: T[] = [];
  for await (const item of read(cursor)) {
    const last = items.at(-1);
    if (items.length === limit && last !== undefined) return { items, next: keyOf(last) };
    items.push(item);
  }
  return { items };
}
