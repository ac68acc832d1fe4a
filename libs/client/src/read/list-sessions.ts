import { toQueueError } from '@shellfleet/mailbox';
import { labelsSchema, parseOrThrow, SESSION_STATES, type SessionInfo } from '@shellfleet/protocol';
import { z } from 'zod';
import { type InfoContext, readSessionInfos } from './session-info.ts';

const filterSchema = z.strictObject({
  /** Only sessions in this state. Default: every state but `closed`. */
  state: z.enum(SESSION_STATES, `must be one of ${SESSION_STATES.join(', ')}`).optional(),
  /** Only sessions that have all of these labels. Default: any. */
  labels: labelsSchema.default({}),
  /** Closed sessions too, for as long as their output can be read: the fleet's retention; the 100,000 that were closed last. Default: false. */
  all: z.boolean('must be true or false').default(false),
});
export type SessionFilter = z.input<typeof filterSchema>;

const PAGE = 200;

/** Sessions of this tenant. They are read in pages, so one that changes meanwhile may show its old or its new state. */
export async function* listSessions(context: InfoContext, given: SessionFilter): AsyncGenerator<SessionInfo> {
  const { state, labels, all } = parseOrThrow(filterSchema, given, 'COMMAND_INVALID', 'The filter');
  const closed = all || state === 'closed';
  const wanted = (info: SessionInfo) =>
    (state === undefined ? all || info.state !== 'closed' : info.state === state) &&
    Object.entries(labels).every(([name, value]) => info.labels[name] === value);
  const seen = new Set<string>();
  for (const index of closed ? [context.fleet.index, context.fleet.closed] : [context.fleet.index]) {
    for await (const ids of readIds(context, index)) {
      // A scan may show a member twice, and a closed session is in the first index for a while.
      const fresh = ids.filter((id) => !seen.has(id));
      for (const id of fresh) seen.add(id);
      for (const info of await readSessionInfos(context, fresh.map(context.keysOf))) if (wanted(info)) yield info;
    }
  }
}

async function* readIds(context: InfoContext, index: string): AsyncGenerator<string[]> {
  const prefix = `${context.tenant}:`;
  let cursor = '0';
  do {
    const [next, pairs] = await context.redis
      .zscan(index, cursor, 'MATCH', `${prefix}*`, 'COUNT', PAGE)
      .catch((error: unknown) => {
        throw toQueueError(error);
      });
    cursor = next;
    yield pairs.filter((_value, place) => place % 2 === 0).map((member) => member.slice(prefix.length));
  } while (cursor !== '0');
}
