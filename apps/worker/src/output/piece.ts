import type { StreamName } from '@shellfleet/protocol';
import { type Blocked, totalOf } from './redactor.ts';

/** Cleaned bytes that wait to be stored: all of them in the session's stream, or all in the overflow log. */
export interface Piece {
  stream: StreamName;
  inBudget: boolean;
  rawFrom: number;
  rawTo: number;
  bytesBefore: number;
  newlinesBefore: number;
  parts: Buffer[];
  bytes: number;
  newlines: number;
  redactions: Readonly<Record<string, number>>;
  blocked?: Blocked;
}

/** Piece of the overflow log: cleaned bytes over the budget, with the counters before them. */
export interface OverflowPiece {
  stream: StreamName;
  rawFrom: number;
  rawTo: number;
  bytesBefore: number;
  newlinesBefore: number;
  /** Counts of the stream, including this piece. */
  redactions: Readonly<Record<string, number>>;
  data: Buffer;
}

export function toOverflow(piece: Piece): OverflowPiece {
  const { stream, rawFrom, rawTo, bytesBefore, newlinesBefore, redactions } = piece;
  return { stream, rawFrom, rawTo, bytesBefore, newlinesBefore, redactions, data: toBytes(piece) };
}

/** Returns the redaction fields of a chunk; none when nothing was found. */
export function toNotes(redactions: Readonly<Record<string, number>>, blocked?: Blocked) {
  const notes: { redactions?: Readonly<Record<string, number>>; blocked?: Blocked } = {};
  if (totalOf(redactions) > 0) notes.redactions = redactions;
  if (blocked !== undefined) notes.blocked = blocked;
  return notes;
}

export function toBytes({ parts }: Piece): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}
