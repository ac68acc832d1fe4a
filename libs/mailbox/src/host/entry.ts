import type { CarriedEntry, EntryKind } from '@shellfleet/protocol';
import { asNumber, asString } from '@shellfleet/redis';
import type { Owner } from './owner.ts';

export interface Entry {
  id: string;
  kind: EntryKind;
  /** Sealed. Empty when the entry has ended. */
  payload: string;
  /** producer that waits for the Result, or empty */
  inbox: string;
  /** by the clock of Redis, ms */
  acceptedAt: number;
  /** Time of the last start; 0 before the first. */
  startedAt: number;
  /** Time of the first start. Set when the entry was started again. */
  firstStartedAt?: number;
  /** When a person was asked about the entry, the last time, and when that ended. */
  asked?: { from: number; to: number | undefined };
  /** stored raw bytes of each stream */
  offsets: { stdout: number; stderr: number };
  seq: number;
  retry: 'never' | 'idempotent';
  /** Set when a caller has cancelled the running entry. */
  cancelReason?: string;
  fence: number;
  /** Host on which the entry started. Only a keeper that ran there under `fence` knows whether the entry has begun. */
  host: string;
  /** Number of starts, including this one. */
  starts: number;
  /** Sealed first attempt, when this entry has or awaits a second attempt. */
  first?: string;
}

/** Reply of each script that starts the head of the mailbox. */
export type Taken =
  /** Nothing waits, or the head is held. `closing`: the owner has to end the generation. */
  | { type: 'empty'; closing?: true }
  /** The entry is `started` if this call started it, and `running` if an earlier call did. */
  | { type: 'started' | 'running' | 'overdue' | 'needs-admission'; entry: Entry };

/** Entry that a wake-up carries: an entry that was started in the name of its owner, or the head. */
export type Rung = { type: 'started' | 'needs-admission'; entry: Entry };

const TAKEN_TYPES = { 1: 'started', 2: 'running', 3: 'overdue', 4: 'needs-admission' } as const;

/** Parses `{code, id, payload, fields}`, with the fields of the prelude's `running_entry`, or `{0, phase}`. */
export function toTaken(reply: unknown[]): Taken {
  const type = TAKEN_TYPES[reply[0] as keyof typeof TAKEN_TYPES];
  if (type !== undefined) return { type, entry: toEntry(asString(reply[1]), reply[2], reply[3] as unknown[]) };
  return asString(reply[1]) === 'closing' ? { type: 'empty', closing: true } : { type: 'empty' };
}

/** Returns the entry of a wake-up, or undefined when it is for an owner under another fence. */
export function toRung(carried: CarriedEntry, { fence, host }: Pick<Owner, 'fence' | 'host'>): Rung | undefined {
  const { id, payload, kind, inbox, acceptedAt, retry, startedAt } = carried;
  if (carried.fence !== String(fence)) return undefined;
  const isStarted = startedAt !== '';
  const owned = isStarted ? [startedAt, carried.fence, host] : [];
  const unset = [undefined, undefined, undefined, undefined];
  const entry = toEntry(id, payload, [kind, inbox, acceptedAt, retry, ...unset, ...owned]);
  return { type: isStarted ? 'started' : 'needs-admission', entry };
}

/** Converts the fields of the prelude's `running_entry`, of which the last may be missing. */
export function toEntry(id: string, payload: unknown, fields: unknown[]): Entry {
  const [kind, inbox, acceptedAt, retry, starts, first, asked, firstAt, startedAt, fence, host] = fields;
  const [stdout, stderr, seq, cancel] = fields.slice(11);
  const cancelReason = asString(cancel);
  const attempted = asString(first);
  return {
    id,
    payload: asString(payload),
    kind: asString(kind) as EntryKind,
    inbox: asString(inbox),
    acceptedAt: asNumber(acceptedAt),
    startedAt: asNumber(startedAt),
    ...(firstAt ? { firstStartedAt: asNumber(firstAt) } : {}),
    ...(asked ? { asked: toInterval(asString(asked)) } : {}),
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

/** Parses `<from> <to>`, or `<from>` of what still goes on. */
function toInterval(text: string): { from: number; to: number | undefined } {
  const [from, to] = text.split(' ').map(Number);
  return { from: from ?? 0, to };
}
