import type { Entry } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { BegunId } from '../journal/journal.ts';

/** The id of an entry in the host's journal. */
export function toBegunId({ id }: Pick<Entry, 'id'>, { namespace, tenant, session }: SessionKeys): BegunId {
  return { namespace, tenant, of: session, id };
}
