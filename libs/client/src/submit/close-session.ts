import { type Closed, callHost, close, notify, readLife } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { Feeds } from '../connection/feeds.ts';
import { isHostAlive } from '../hosts/is-host-alive.ts';
import { type LeaveContext, leaveLine } from './leave-line.ts';

/** The part of a view that is needed to close a session. */
export interface CloseContext extends LeaveContext {
  readonly feeds: Feeds;
}

/** Closes a session. Resolves when it is closed, at once when no host has it or its host is unreachable. */
export async function closeSession(
  context: CloseContext,
  keys: SessionKeys,
  generation: string | undefined,
): Promise<void> {
  const { type, host } = await beginClose(context, keys, generation);
  if (type === 'closing') await untilClosed(context, keys, host);
}

/** Begins to close a session. When it resolves, the session is closed by its host even if this process ends. */
export async function beginClose(
  context: CloseContext,
  keys: SessionKeys,
  generation: string | undefined,
): Promise<Closed> {
  const { host = '' } = (await readLife(context.redis, keys)) ?? {};
  const outOfReach = host !== '' && !(await isHostAlive(context, host));
  const closed = await close(context.redis, keys, generation, outOfReach);
  const { tenant, session } = keys;
  await Promise.all(
    closed.ended.map(({ inbox, entryId, event }) =>
      notify(context.redis, context.namespace, inbox, { tenant, session, entryId, event, result: '' }).catch(() => {}),
    ),
  );
  if (closed.type === 'closed' && host === '') await leaveLine(context, keys).catch(() => {});
  if (closed.type === 'closing') {
    const call = { type: 'close', tenant, session, generation: closed.generation } as const;
    await callHost(context.redis, context.namespace, closed.host, call);
  }
  return closed;
}

async function untilClosed(context: CloseContext, keys: SessionKeys, host: string): Promise<void> {
  using wake = await context.feeds.follow(keys.feed);
  const generation = (await readLife(context.redis, keys))?.generation;
  for (;;) {
    const now = await readLife(context.redis, keys);
    if (now?.life !== 'closing' || now.generation !== generation) return;
    if (!(await isHostAlive(context, now.host || host))) {
      await beginClose(context, keys, generation);
      continue;
    }
    await wake.next();
  }
}
