import { toQueueError } from '@shellfleet/mailbox';
import type { SessionInfo, SessionState } from '@shellfleet/protocol';
import type { InfoContext } from './session-info.ts';
import { readSessionInfos } from './session-info.ts';

const PAGE = 200;

/** Sessions of this tenant: recorded, open, or closed a moment ago. They are read in pages, so one that changes meanwhile may show its old or its new state. */
export async function* listSessions(
  context: InfoContext,
  state: SessionState | undefined,
): AsyncGenerator<SessionInfo> {
  const prefix = `${context.tenant}:`;
  const seen = new Set<string>();
  let cursor = '0';
  do {
    const [next, pairs] = await context.redis
      .zscan(context.fleet.index, cursor, 'MATCH', `${prefix}*`, 'COUNT', PAGE)
      .catch((error: unknown) => {
        throw toQueueError(error);
      });
    cursor = next;
    // A scan may show a member twice.
    const ids = pairs.filter((_value, index) => index % 2 === 0).map((member) => member.slice(prefix.length));
    const fresh = ids.filter((id) => !seen.has(id));
    for (const id of fresh) seen.add(id);
    const infos = await readSessionInfos(context, fresh.map(context.keysOf));
    for (const info of infos) if (state === undefined || info.state === state) yield info;
  } while (cursor !== '0');
}
