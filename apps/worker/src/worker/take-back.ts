import type { SessionHost } from '../run/host-services.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { type HostedSessions, memberOf } from './hosted-sessions.ts';

/** Continues this host's sessions in their living sandboxes. `removed` resolves when its other sandboxes are gone. */
export async function takeBack(
  { jobs, sandboxes, logger }: SessionHost,
  sessions: HostedSessions,
): Promise<{ removed: Promise<unknown> }> {
  const [own, found] = await Promise.all([jobs.listOwn(), sandboxes.list()]);
  const owned = new Set(own.map(memberOf));
  const living = new Map<string, Sandbox>();
  const leftovers: Sandbox[] = [];
  for (const { sandbox, state } of found) {
    const member = memberOf(sandbox.session);
    if (state === 'running' && owned.has(member) && !living.has(member)) living.set(member, sandbox);
    else leftovers.push(sandbox);
  }
  for (const job of own) sessions.serve(job, living.get(memberOf(job)));
  if (own.length > 0) logger.info({ sessions: own.length, adoptable: living.size }, 'worker.restarted');
  const removals = leftovers.map((sandbox) =>
    sandbox.remove().catch((err: unknown) => logger.warn({ err }, 'sandbox.remove-failed')),
  );
  return { removed: Promise.all(removals) };
}
