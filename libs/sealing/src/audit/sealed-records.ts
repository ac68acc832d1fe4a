import type { AuditChainName } from '@shellfleet/protocol';
import type { Sealer } from '../seal.ts';
import { sealPlace } from '../seal-place.ts';

/** Returns the lines of sealed records of an audit in Redis. Returns undefined if they do not open in this place. */
export function openAuditRecords(
  sealer: Pick<Sealer, 'open'>,
  namespace: string,
  { chain, first, sealed }: { chain: AuditChainName; first: number; sealed: string },
): string[] | undefined {
  try {
    const text = sealer.open(sealed, sealPlace('audit-records', { namespace }, { chain, first }));
    return text.split('\n').slice(0, -1);
  } catch {
    return undefined;
  }
}
