import { readSealedSpec } from '@shellfleet/mailbox';
import type { Refusals } from '@shellfleet/placement';
import { type HostBeat, type ResolvedSessionSpec, type SessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { FleetContext } from '../connection/fleet-context.ts';

interface RefusalContext extends FleetContext {
  readonly sealer: Sealer;
}

/**
 * Returns for each session id the parts of its spec that the host refuses. Leaves out sessions whose spec this process
 * cannot open.
 */
export async function readRefusals(
  context: RefusalContext,
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

async function openSpec(
  { redis, sealer }: RefusalContext,
  keys: SessionKeys,
): Promise<ResolvedSessionSpec | undefined> {
  const sealed = await readSealedSpec(redis, keys);
  if (sealed === undefined) return undefined;
  try {
    const plain = sealer.open(sealed.spec, sealPlace('spec', keys, { generation: sealed.generation }));
    return sessionSpecSchema.safeParse(JSON.parse(plain)).data;
  } catch {
    return undefined;
  }
}
