import {
  labelsSchema,
  parseOrThrow,
  SESSION_STATES,
  type SessionInfo,
  type SessionState,
  tenantKeys,
} from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import { z } from 'zod';
import { readKept } from './kept.ts';
import { type InfoContext, readSessionInfos } from './session-info.ts';

/** Which sessions are listed. */
export interface SessionFilter {
  /**
   * State of the sessions.
   * @default every state but `closed`, and closed ones of which a container is kept
   */
  state?: SessionState | undefined;
  /**
   * Labels that the sessions must have, all of them.
   * @default any
   */
  labels?: Record<string, string> | undefined;
  /**
   * Whether to list also closed sessions whose output can still be read, which is for the fleet's retention.
   * @default false
   * @limit the 100,000 that were closed last
   */
  all?: boolean | undefined;
}

const filterSchema = z.strictObject({
  state: z.enum(SESSION_STATES, `must be one of ${SESSION_STATES.join(', ')}`).optional(),
  labels: labelsSchema.default({}),
  all: z.boolean('must be true or false').default(false),
});

const PAGE = 200;

/** Yields the sessions of this tenant in pages. A session that changes meanwhile may show its old or its new state. */
export async function* listSessions(context: InfoContext, given: SessionFilter): AsyncGenerator<SessionInfo> {
  const { state, labels, all } = parseOrThrow(filterSchema, given, 'COMMAND_INVALID', 'The filter');
  const kept = await readKept(context);
  const closed = all || state === 'closed';
  const wanted = (info: SessionInfo) =>
    (state === undefined ? all || info.state !== 'closed' || info.kept !== undefined : info.state === state) &&
    Object.entries(labels).every(([name, value]) => info.labels[name] === value);
  const seen = new Set<string>();
  const keys = tenantKeys(context.namespace, context.tenant);
  for (const index of closed ? [keys.index, keys.closed] : [keys.index]) {
    for await (const ids of readIds(context, index)) {
      // A scan may return a member twice, and a closed session stays in the first index for a while.
      const fresh = ids.filter((id) => !seen.has(id));
      for (const id of fresh) seen.add(id);
      for (const info of await readSessionInfos(context, fresh.map(context.keysOf))) if (wanted(info)) yield info;
    }
  }
  // Closed sessions of which a host keeps a container, and that neither index has returned.
  const others = [...kept.keys()].filter((id) => !seen.has(id));
  for (const info of await readSessionInfos(context, others.map(context.keysOf))) if (wanted(info)) yield info;
}

async function* readIds(context: InfoContext, index: string): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const [next, pairs] = await context.redis.zscan(index, cursor, 'COUNT', PAGE).catch((error: unknown) => {
      throw toQueueError(error);
    });
    cursor = next;
    yield pairs.filter((_value, place) => place % 2 === 0);
  } while (cursor !== '0');
}
