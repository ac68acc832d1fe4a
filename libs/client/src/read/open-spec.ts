import { readSealedSpec } from '@shellfleet/mailbox';
import { type ResolvedSessionSpec, type SessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { FleetContext } from '../connection/fleet-context.ts';

export interface SpecContext extends FleetContext {
  readonly sealer: Sealer;
}

/** Reads the spec of a session. Returns undefined if there is none, or if this process cannot open it. */
export async function openSpec(
  { redis, sealer }: SpecContext,
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
