import type { EntryKind } from '@shellfleet/protocol';
import { asNumber, asString } from './reply.ts';

/** An entry as its host sees it. */
export interface Entry {
  id: string;
  kind: EntryKind;
  /** sealed; empty when it has ended */
  payload: string;
  /** producer that waits for it */
  inbox: string;
  /** by the clock of Redis, ms */
  acceptedAt: number;
  startedAt: number;
  /** raw bytes of each stream that are stored */
  offsets: { stdout: number; stderr: number };
  /** output entries that are stored */
  seq: number;
  retry: 'never' | 'idempotent';
  /** why a caller cancelled it while it ran */
  cancelReason?: string;
  /** under which it was started */
  fence: number;
  /**
   * the host that started it. A keeper that has not begun it may be given it only on this host, and only if the keeper was there under this
   * fence: any other may be a stranger to what has run already.
   */
  host: string;
}

/** What the head of the mailbox is: started by this call, running since an earlier one, past its start deadline (not started), or nothing (`closing`: the life is to be ended). */
export type Taken = { type: 'empty'; closing?: true } | { type: 'started' | 'running' | 'overdue'; entry: Entry };

const TAKEN_TYPES = { 1: 'started', 2: 'running', 3: 'overdue' } as const;

/** Reads `take_head`'s answer. */
export function toTaken(reply: unknown[]): Taken {
  const type = TAKEN_TYPES[reply[0] as keyof typeof TAKEN_TYPES];
  if (type !== undefined) return { type, entry: toEntry(reply) };
  return asString(reply[1]) === 'closing' ? { type: 'empty', closing: true } : { type: 'empty' };
}

function toEntry(reply: unknown[]): Entry {
  const cancelReason = asString(reply[11]);
  return {
    id: asString(reply[1]),
    payload: asString(reply[2]),
    kind: asString(reply[3]) as EntryKind,
    inbox: asString(reply[4]),
    acceptedAt: asNumber(reply[5]),
    startedAt: asNumber(reply[6]),
    offsets: { stdout: asNumber(reply[7]), stderr: asNumber(reply[8]) },
    seq: asNumber(reply[9]),
    retry: asString(reply[10]) === 'idempotent' ? 'idempotent' : 'never',
    ...(cancelReason === '' ? {} : { cancelReason }),
    fence: asNumber(reply[12]),
    host: asString(reply[13]),
  };
}
