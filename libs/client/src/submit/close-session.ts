import { type Closed, callHost, close, notify, readGeneration } from '@shellfleet/mailbox';
import { type SessionKeys, ShellfleetError } from '@shellfleet/protocol';
import { type Sealer, signClose } from '@shellfleet/sealing';
import type { Feeds } from '../connection/feeds.ts';
import { isHostAlive } from '../hosts/is-host-alive.ts';
import { type LeaveContext, leaveQueue } from './leave-queue.ts';

export interface CloseContext extends LeaveContext {
  readonly feeds: Feeds;
  readonly sealer: Sealer;
}

/** Closes a session. Resolves when it is closed, or at once without a reachable host. Rejects with UNAUTHORIZED. */
export async function closeSession(
  context: CloseContext,
  keys: SessionKeys,
  generation: string | undefined,
): Promise<void> {
  const closed = await beginClose(context, keys, generation);
  if (closed.type === 'closing') await untilClosed(context, keys, closed);
}

/** Begins to close a session. After it has resolved, the host closes the session even if this process ends. */
export async function beginClose(
  context: CloseContext,
  keys: SessionKeys,
  generation: string | undefined,
): Promise<Closed> {
  const { host = '' } = (await readGeneration(context.redis, keys)) ?? {};
  const outOfReach = host !== '' && !(await isHostAlive(context, host));
  const sign = (closing: string) => signClose(context.sealer, keys, closing);
  const closed = await close(context.redis, keys, generation, outOfReach, sign);
  const { tenant, session } = keys;
  await Promise.all(
    closed.ended.map(({ inbox, entryId, event }) =>
      notify(context.redis, context.namespace, inbox, { tenant, session, entryId, event, result: '' }).catch(() => {}),
    ),
  );
  if (closed.type === 'closed' && host === '') await leaveQueue(context, keys).catch(() => {});
  if (closed.type === 'closing') {
    const call = { type: 'close', tenant, session, generation: closed.generation, signed: closed.signed } as const;
    await callHost(context.redis, context.namespace, closed.host, call);
  }
  return closed;
}

async function untilClosed(context: CloseContext, keys: SessionKeys, { host, generation }: Closed): Promise<void> {
  using wake = await context.feeds.follow(keys.feed);
  for (;;) {
    const now = await readGeneration(context.redis, keys);
    if (now?.phase === 'open' && now.generation === generation) throw refused(keys);
    if (now?.phase !== 'closing' || now.generation !== generation) return;
    if (!(await isHostAlive(context, now.host || host))) {
      await beginClose(context, keys, generation);
      continue;
    }
    await wake.next();
  }
}

function refused({ session }: SessionKeys): ShellfleetError {
  return new ShellfleetError(
    'UNAUTHORIZED',
    `Session ${session} is not closed: its host closes it only when a known key of the tenant has signed that, and that has not expired (SHELLFLEET_SIGNING_KEY). What waited in it has ended.`,
  );
}
