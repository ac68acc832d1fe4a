import type { Entry } from '@shellfleet/mailbox';
import { ATTRIBUTES, toCommandId } from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import { toBegunId } from '../run/begun-id.ts';
import { finishUnauthorized } from '../run/run-entry.ts';
import { ranOutside } from '../run/runs-outside.ts';
import type { SessionContext } from '../run/session-context.ts';
import { hasBegun } from './has-begun.ts';
import type { SessionParts } from './session-parts.ts';
import { asLost, type Step, toStart } from './step.ts';

/**
 * Returns what is done with an entry that the mailbox gave to this host as not begun. The journal knows it when Redis
 * came back with an older state: then it is followed if the keeper still has it, and is lost otherwise, unless its
 * submitter allowed another run. When Redis cannot have fallen back, and signatures are asked for, somebody has put the
 * entry there again: it is refused and reported, since its id may be used once.
 */
export function classifyTaken(entry: Entry, parts: SessionParts): Step | Promise<Step> {
  const { journal, owner } = parts.context;
  return journal.knows(toBegunId(entry, owner.keys)) ? classifyBegun(entry, parts) : toStart(entry);
}

async function classifyBegun(entry: Entry, { context, shell }: SessionParts): Promise<Step> {
  const { owner, logger, sealer, redisLosses } = context;
  logger.warn({ [ATTRIBUTES.commandId]: toCommandId(owner.keys.session, entry.id) }, 'command.begun-before');
  if (sealer.verifies && !redisLosses.mayHaveHappened()) {
    refuseReplay(entry, context);
    return { type: 'end', entry, how: finishUnauthorized };
  }
  // Only the hello of a new connection says what the keeper has now.
  const hello = await shell.reconnect();
  // The wider sandbox of what ran outside ended with the process that had opened it.
  if (ranOutside(entry, context)) return lost(entry);
  if (hello !== undefined && (await hasBegun(entry, hello, shell))) return { type: 'run', entry, from: 'resume' };
  return entry.retry === 'idempotent' ? toStart(entry) : lost(entry);
}

function lost(entry: Entry): Step {
  return { type: 'end', entry, how: asLost('begun-before') };
}

function refuseReplay({ id, retry, inbox }: Entry, { sealer, owner, generation }: SessionContext): void {
  try {
    sealer.refuse(sealPlace('payload', owner.keys, { id, generation, retry, inbox }), 'this host began it before');
  } catch {
    // It is reported, and the entry ends with the same error.
  }
}
