import { setTimeout as delay } from 'node:timers/promises';
import { callHost } from '@shellfleet/mailbox';
import { type SessionKeys, ShellfleetError } from '@shellfleet/protocol';
import { signClose } from '@shellfleet/sealing';
import { readKept } from '../read/kept.ts';
import type { CloseContext } from './close-session.ts';

const POLL_MS = 50;
const WITHIN_MS = 10_000;

/**
 * Makes hosts remove a session's kept containers, and returns their number. Rejects with HOST_UNREACHABLE after 10 s.
 */
export async function purgeSession(context: CloseContext & { tenant: string }, keys: SessionKeys): Promise<number> {
  const readOwn = async () => (await readKept(context)).get(keys.session) ?? [];
  const before = await readOwn();
  for (const { hostId, generation } of before) {
    const signed = signClose(context.sealer, keys, generation);
    const call = { type: 'purge', tenant: keys.tenant, session: keys.session, generation, signed } as const;
    await callHost(context.redis, context.namespace, hostId, call);
  }
  for (const until = performance.now() + WITHIN_MS; ; await delay(POLL_MS)) {
    const left = await readOwn();
    if (left.length === 0) return before.length;
    if (performance.now() < until) continue;
    const hosts = [...new Set(left.map(({ hostId }) => hostId))].join(', ');
    throw new ShellfleetError(
      'HOST_UNREACHABLE',
      `What is kept of session ${keys.session} on ${hosts} was not removed within ${WITHIN_MS / 1_000} s: the host is away, or asks for a signature (SHELLFLEET_SIGNING_KEY).`,
      { sessionId: keys.session },
    );
  }
}
