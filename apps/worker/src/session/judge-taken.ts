import type { Entry } from '@shellfleet/mailbox';
import { ATTRIBUTES, toCommandId } from '@shellfleet/protocol';
import { toBegunId } from '../run/begun-id.ts';
import { ranOutside } from '../run/runs-outside.ts';
import type { SessionParts } from './session-parts.ts';

/** `never-began`: no byte of it has reached a shell of this host. */
export type Judgement = 'never-began' | 'runs-here' | 'lost';

/**
 * What became of an entry that the mailbox gave to this host as not begun. The journal knows it when Redis came back with an older state: then
 * it is followed if the keeper still has it, and is lost otherwise, unless its submitter allowed another run.
 */
export async function judgeTaken(entry: Entry, { context, shell }: SessionParts): Promise<Judgement> {
  const { journal, owner, logger } = context;
  if (!journal.knows(toBegunId(entry, owner.keys))) return 'never-began';
  logger.warn({ [ATTRIBUTES.commandId]: toCommandId(owner.keys.session, entry.id) }, 'command.begun-before');
  // Only the hello of a new connection says what the keeper has now.
  const hello = await shell.reconnect();
  // The wider sandbox of what ran outside ended with the process that had opened it.
  if (ranOutside(entry, context)) return 'lost';
  if (hello?.entryId === entry.id) return 'runs-here';
  return entry.retry === 'idempotent' ? 'never-began' : 'lost';
}
