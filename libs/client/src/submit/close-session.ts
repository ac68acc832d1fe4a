import { type Closed, close, notify, readLife } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { Producer } from '../producer.ts';
import { callHost, isHostAlive } from './call-host.ts';

/** Ends a life of a session and resolves when it has ended; at once when no host holds it, or its host is out of reach. */
export async function closeSession(
  producer: Producer,
  keys: SessionKeys,
  generation: string | undefined,
): Promise<void> {
  const { type, host } = await beginClose(producer, keys, generation);
  if (type === 'closing') await untilClosed(producer, keys, host);
}

/** From here on the life ends whatever becomes of this process. */
export async function beginClose(
  producer: Producer,
  keys: SessionKeys,
  generation: string | undefined,
): Promise<Closed> {
  const { host = '' } = (await readLife(producer.redis, keys)) ?? {};
  const outOfReach = host !== '' && !(await isHostAlive(producer, host));
  const closed = await close(producer.redis, keys, generation, outOfReach);
  const { tenant, session } = keys;
  await Promise.all(
    closed.ended.map(({ inbox, entryId, event }) =>
      notify(producer.redis, producer.namespace, inbox, { tenant, session, entryId, event, result: '' }).catch(
        () => {},
      ),
    ),
  );
  if (closed.type === 'closing') await callHost(producer, closed.host, { type: 'close', tenant, session });
  return closed;
}

async function untilClosed(producer: Producer, keys: SessionKeys, host: string): Promise<void> {
  using wake = await producer.feeds.follow(keys.feed);
  const generation = (await readLife(producer.redis, keys))?.generation;
  for (;;) {
    const now = await readLife(producer.redis, keys);
    if (now?.life !== 'closing' || now.generation !== generation) return;
    if (!(await isHostAlive(producer, now.host || host))) {
      await beginClose(producer, keys, generation);
      continue;
    }
    await wake.next();
  }
}
