import type { CarriedEntry, EntryKind } from '@shellfleet/protocol';
import { asNumber, asString } from '@shellfleet/redis';
import type { Owner } from './owner.ts';

/** An entry of a mailbox, for the host that runs it. */
export interface Entry {
  id: string;
  kind: EntryKind;
  /** sealed; empty when it has ended */
  payload: string;
  /** the producer that waits for its Result, or empty */
  inbox: string;
  /** by the clock of Redis, ms */
  acceptedAt: number;
  startedAt: number;
  /** raw bytes of each stream that are stored */
  offsets: { stdout: number; stderr: number };
  /** output entries that are stored */
  seq: number;
  retry: 'never' | 'idempotent';
  /** Set when a caller has cancelled it while it ran. */
  cancelReason?: string;
  /** the fence under which it was started */
  fence: number;
  /**
   * The host that started it. A keeper that has not begun the entry may run it only on this host, and only if the keeper existed under
   * this fence. Any other keeper has no record of whether the entry has already run.
   */
  host: string;
  /** How often it was started, this time included. */
  starts: number;
  /** Its first attempt, sealed, when this is its second one, or it waits for that. */
  first?: string;
}

/** The reply of each script that starts the head of the mailbox. */
export type Taken =
  /** Nothing can be started: nothing waits, or the head is held. `closing`: the owner has to end the generation. */
  | { type: 'empty'; closing?: true }
  /** Started by this call; running since an earlier one; past its start deadline; not admitted yet. The last two are not started. */
  | { type: 'started' | 'running' | 'overdue' | 'needs-admission'; entry: Entry };

/** An entry that a wake-up brings: started in the name of its owner, or the head. */
export type Rung = { type: 'started' | 'needs-admission'; entry: Entry };

const TAKEN_TYPES = { 1: 'started', 2: 'running', 3: 'overdue', 4: 'needs-admission' } as const;

/** The only parser of the replies `{code, id, payload, fields}`, whose fields the prelude lists at `running_entry`, and of `{0, phase}`. */
export function toTaken(reply: unknown[]): Taken {
  const type = TAKEN_TYPES[reply[0] as keyof typeof TAKEN_TYPES];
  if (type !== undefined) return { type, entry: toEntry(asString(reply[1]), reply[2], reply[3] as unknown[]) };
  return asString(reply[1]) === 'closing' ? { type: 'empty', closing: true } : { type: 'empty' };
}

/** The entry that a wake-up carries. Undefined: it is for an owner under another fence. */
export function toRung(carried: CarriedEntry, { fence, host }: Pick<Owner, 'fence' | 'host'>): Rung | undefined {
  const { id, payload, kind, inbox, acceptedAt, retry, startedAt } = carried;
  if (carried.fence !== String(fence)) return undefined;
  const isStarted = startedAt !== '';
  const owned = isStarted ? [startedAt, carried.fence, host] : [];
  const entry = toEntry(id, payload, [kind, inbox, acceptedAt, retry, undefined, undefined, ...owned]);
  return { type: isStarted ? 'started' : 'needs-admission', entry };
}

/** `fields`: as the prelude's `running_entry` has them; absent ones at the end may be left out. */
export function toEntry(id: string, payload: unknown, fields: unknown[]): Entry {
  const [kind, inbox, acceptedAt, retry, starts, first, startedAt, fence, host, stdout, stderr, seq, cancel] = fields;
  const cancelReason = asString(cancel);
  const attempted = asString(first);
  return {
    id,
    payload: asString(payload),
    kind: asString(kind) as EntryKind,
    inbox: asString(inbox),
    acceptedAt: asNumber(acceptedAt),
    startedAt: asNumber(startedAt),
    offsets: { stdout: asNumber(stdout), stderr: asNumber(stderr) },
    seq: asNumber(seq),
    retry: asString(retry) === 'idempotent' ? 'idempotent' : 'never',
    ...(cancelReason === '' ? {} : { cancelReason }),
    fence: asNumber(fence),
    host: asString(host),
    starts: asNumber(starts) || 1,
    ...(attempted === '' ? {} : { first: attempted }),
  };
}
