import type { Refusals } from '@shellfleet/placement';
import type { HostBeat, SessionKeys } from '@shellfleet/protocol';
import { openSpec, type SpecContext } from './open-spec.ts';

/**
 * Returns for each session id the parts of its spec that the host refuses. Leaves out sessions whose spec this process
 * cannot open.
 */
export async function readRefusals(
  context: SpecContext,
  sessions: readonly { keys: SessionKeys }[],
): Promise<Map<string, Refusals<HostBeat>>> {
  const refusals = new Map<string, Refusals<HostBeat>>();
  if (sessions.length === 0) return refusals;
  const { refusedByOffer } = await import('@shellfleet/policy');
  await Promise.all(
    sessions.map(async ({ keys }) => {
      const spec = await openSpec(context, keys);
      if (spec === undefined) return;
      refusals.set(keys.session, ({ allow, defaultImage }) => refusedByOffer(spec, allow, defaultImage));
    }),
  );
  return refusals;
}
