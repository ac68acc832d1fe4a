import type { Entry } from '@shellfleet/mailbox';
import { ATTRIBUTES, ensureShellfleetError, type ShellfleetError, toCommandId } from '@shellfleet/protocol';
import { sealPlace, unauthorized } from '@shellfleet/sealing';
import type { Verdict } from '../admission/admission.ts';
import { toBegunId } from '../journal/journal.ts';
import { untilHeld } from '../lease/until-held.ts';
import { finishDenied, finishFailed, finishUnauthorized, ranInWider } from '../run/run-entry.ts';
import type { SessionContext } from '../run/session-context.ts';
import type { SessionShell } from '../shell/session-shell.ts';
import type { ShellHello } from '../shell/shell.ts';
import { decideEntry } from './admit-entry.ts';
import { auditVerdict } from './audit-verdict.ts';
import { makeReady } from './make-ready.ts';
import { aboutSession, type SessionParts } from './session-parts.ts';
import { asLost, type EndUnrun, LOOK, type Step, toStart } from './step.ts';

/**
 * Returns the step for an entry that the mailbox gave to this host as not begun. If the journal has the entry, Redis
 * lost data: the entry is followed if the keeper has it, else it is lost or runs again. If Redis cannot have lost data,
 * and signatures are required, somebody has put the entry there again, so it is refused.
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
  // Only the hello of a new connection tells what the keeper has now.
  const hello = await shell.reconnect();
  // The entry's wider sandbox ended with the process that had opened it.
  if (ranInWider(entry, context)) return lost(entry);
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
    // The refusal is reported by now, and the entry ends with the same error.
  }
}

/**
 * Runs a started entry if the shell is ready, the lease held (SESSION-2) and it is admitted (ADMIT-8). Else ends it.
 */
export async function startEntry(
  { entry, orElse }: Extract<Step, { type: 'start' }>,
  parts: SessionParts,
): Promise<Step> {
  const { context, lease, shell } = parts;
  // The entry may have been taken for a shell that has ended since.
  if (!shell.ready && !(await makeReady(parts, undefined, entry))) return { type: 'end', entry, how: orElse };
  if (!(await untilHeld(lease, context.signal))) return LOOK;
  const refused = await decideStarted(entry, parts);
  return refused === undefined ? { type: 'run', entry, from: 'start' } : { type: 'end', entry, how: refused };
}

/**
 * Decides about an entry that Redis has as started but this process has not admitted (ADMIT-8): after a restart, on a
 * new shell, or because somebody changed the records. Returns how it ends, or undefined when it may run.
 */
function decideStarted(entry: Entry, parts: SessionParts): Promise<EndUnrun | undefined> | undefined {
  const { digest } = parts.admission;
  return digest === '' || parts.admitted.is(entry, digest) ? undefined : decideAgain(entry, digest, parts);
}

async function decideAgain(entry: Entry, digest: string, parts: SessionParts): Promise<EndUnrun | undefined> {
  const { admitted, context } = parts;
  const { owner, logger } = context;
  logger.info({ [ATTRIBUTES.commandId]: toCommandId(owner.keys.session, entry.id) }, 'command.decided-again');
  let unanswered = false;
  const verdict = await context.approvals.starts.during({ ...aboutSession(parts), entryId: entry.id }, async () => {
    const decided = await decideAsAsked(entry, parts).catch(ensureShellfleetError);
    unanswered = !(decided instanceof Error) && decided.type === 'hold';
    return auditVerdict(withoutAsking(decided), entry, digest, parts);
  });
  if (verdict instanceof Error) return failing(verdict);
  if (verdict.type === 'deny') {
    // A question is still open, so only an answer that no approver has signed can have started the entry.
    if (unanswered && context.sealer.verifies) return failing(unauthorized());
    return (refused, ...of) => finishDenied(refused, verdict, ...of);
  }
  admitted.set(entry, digest);
  return undefined;
}

/** Decides whether an entry may run on another shell, since an answer holds for one shell. */
export async function mayRunAgain(entry: Entry, parts: SessionParts): Promise<boolean> {
  parts.admitted.clear();
  return (await decideStarted(entry, parts)) === undefined;
}

/** Decides about the question as it was asked, which may have included the commands that opened the shell. */
async function decideAsAsked(entry: Entry, parts: SessionParts): Promise<Verdict> {
  const verdict = await decideEntry(entry, !parts.shell.ready, parts);
  return verdict.type === 'hold' && parts.shell.ready ? decideEntry(entry, true, parts) : verdict;
}

/** Turns a hold into a denial, as nothing can be asked about an entry that counts as started. */
function withoutAsking(verdict: Verdict | ShellfleetError): Exclude<Verdict, { type: 'hold' }> | ShellfleetError {
  if (verdict instanceof Error || verdict.type !== 'hold') return verdict;
  return { type: 'deny', reason: `${verdict.question.reason} No answer allows it.` };
}

const failing =
  (error: ShellfleetError): EndUnrun =>
  (entry, ...of) =>
    finishFailed(entry, error, ...of);

/** Returns whether the keeper that sent `hello` has begun the entry, and still has it. */
export async function hasBegun(
  { id, kind }: Pick<Entry, 'id' | 'kind'>,
  hello: ShellHello,
  shell: Pick<SessionShell, 'live'>,
): Promise<boolean> {
  if (kind !== 'file') return hello.entryId === id;
  return (await shell.live?.files.hasBegun(id)) ?? false;
}
