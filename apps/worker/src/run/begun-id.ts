import type { Entry } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { BegunId } from '../journal/journal.ts';

/** Returns the id of an entry in the host's journal. A second attempt has a separate one. */
export function toBegunId(
  { id, first }: Pick<Entry, 'id' | 'first'>,
  { namespace, tenant, session }: SessionKeys,
): BegunId {
  return { namespace, tenant, of: session, id: first === undefined ? id : `${id}.2` };
}
