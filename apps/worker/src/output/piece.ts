import type { StreamName } from '@shellfleet/protocol';
import { type Blocked, totalOf } from './redactor.ts';

/** Cleaned bytes that wait to be given out: all of them go into the stream, or all into the host's log. */
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

/** A piece for the host's log: cleaned bytes beyond the budget, with the counters that were reached before it. */
export interface OverflowPiece {
  stream: StreamName;
  rawFrom: number;
  rawTo: number;
  bytesBefore: number;
  newlinesBefore: number;
  /** Of its stream, up to and with this piece. */
  redactions: Readonly<Record<string, number>>;
  data: Buffer;
}

export function toOverflow(piece: Piece): OverflowPiece {
  const { stream, rawFrom, rawTo, bytesBefore, newlinesBefore, redactions } = piece;
  return { stream, rawFrom, rawTo, bytesBefore, newlinesBefore, redactions, data: toBytes(piece) };
}

/** What an entry says of redaction; nothing where nothing was found. */
export function toNotes(redactions: Readonly<Record<string, number>>, blocked?: Blocked) {
  return {
    ...(totalOf(redactions) === 0 ? {} : { redactions }),
    ...(blocked === undefined ? {} : { blocked }),
  };
}

export function toBytes({ parts }: Piece): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}
